"""Every limit of Groundwire, in one place; the rule that sets it stands beside it."""

HEAD_BYTES = 65_536
"""F-4, X-3: the most frontmatter may take, and all that is read of an object to index it."""

INCLUDES_PER_DOCUMENT = 100
"""I-2: entries of `includes` that count."""

KEY_BYTES = 1_024
"""I-4: the longest key, in UTF-8, that a store can hold."""

PERCENT_DECODINGS = 5
"""I-4: how often an entry is decoded while looking for a disguised path."""

FINDINGS_STORED = 50
"""Findings kept in a node, and the first of each code beyond it; more are counted. An item holds 400 KB."""

INCLUDE_CHARS_STORED, MESSAGE_CHARS_STORED = 256, 1_000
"""Characters of a title or an include as written, and of a finding's message, that a node holds: an alias
may repeat 64 KB a hundred times."""

HEALED_AT_ONCE = 50
"""X-6: dependents judged again for one message; a hub's others follow in further messages."""

LOOKS_AT_ONCE = 8
"""X-9: documents that one reindexing function looks at side by side; below a client's ten connections."""

NODES_SWEPT_AT_ONCE, SWEEP_PAGE_S = 500, 120.0
"""X-9: items of the table that a reconcile reads for one page, and the time it gives the page's documents."""

INDEX_READ_S = 20.0
"""What the indexer waits for the index in all, before the record comes again."""

MESSAGE_CHARS = 120
"""Characters of an author's text that a message quotes."""

MAX_DEPTH, MAX_DOCS, MAX_INCLUDE_BYTES, MAX_TIMEOUT_MS = 5, 64, 25 * 1024 * 1024, 25_000
"""B-1: what a caller's policy is clamped to, and (B-7) what one request may hold in all."""

DOCUMENT_BYTES = 25 * 1024 * 1024
"""The largest document that is read at all, root or include."""

SOURCES_PER_REQUEST = 50
"""G-1."""

MAX_DOCUMENTS_DEFAULT = 5
"""G-3: root documents resolved when the caller does not say."""

DEADLINE_MARGIN_MS = 2_000
"""B-8: what is kept of the platform's time for encoding the answer."""

FETCH_WORKERS = 32
"""Fetches of one request that are under way at once."""

STORE_TIMEOUT_S = 3.0
"""B-8: one attempt at a store, body included."""

RESPONSE_BYTES = 6_291_556
"""G-7: the encoded response a Lambda function may return."""

GRAPH_NODES = 500
"""H: nodes that `GET /v1/graph` returns before it says that it was cut."""
