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

ROOT_BYTES_IN_ALL = 150 * 1024 * 1024
"""B-7: what the root documents of one request may hold together, in equal shares: a function has 1 GB."""

SOURCES_PER_REQUEST = 50
"""G-1."""

MAX_DOCUMENTS_DEFAULT = 5
"""G-3: root documents resolved when the caller does not say."""

DEADLINE_MARGIN_MS = 2_000
"""B-8: what is kept of the platform's time for encoding the answer."""

INDEX_AWAITED_S = 0.1
"""What a finished search waits for the index, where no event tells it of changes."""

LOOKUPS_AT_ONCE = 8
"""G-2: stores listed, and documents asked for one by one, side by side."""

CATALOGUE_FRESH_S = 3_600.0
"""G-2: how old a listing may be before a title that it lacks is looked for in the store itself."""

LISTING_ON_PATH_S = 5.0
"""G-2: what listing may take of a question's time; the next question goes on where it stopped."""

CATALOGUE_KEPT_S = 24 * 3_600.0
"""G-2: how long what a listing found is believed without being found again."""

FETCH_WORKERS = 32
"""Fetches of one request that are under way at once."""

STORE_TIMEOUT_S = 3.0
"""B-8: one attempt at a store, body included."""

TOKEN_TIMEOUT_S = 2.0
"""B-8: one request to whoever gives access tokens, which no store's timeout covers."""

SHAREPOINT_ATTEMPTS, RETRY_AFTER_S = 3, 600.0
"""How often Graph is asked for one thing, and the longest that it is believed to want to be left alone."""

SHAREPOINT_PATH_CHARS, SHAREPOINT_ANSWER_BYTES = 400, 1024 * 1024
"""The longest path SharePoint stores, and the most that is read of an answer that is no document."""

ITEM_KNOWN_S = 5.0
"""How long what was learned of a drive item when it was located is believed when it is fetched."""

DELEGATED_TOKENS, DELEGATED_TOKEN_MARGIN_S = 256, 300.0
"""Z-4: callers' tokens kept by one process, and how long before its end one is no longer used."""

FILE_REUSED_S, FILE_TRUSTED_S = 3_600.0, 300.0
"""G-6: what must be left of a file's life to hand it out again, and how long it is not looked after."""

DELIVERY_MARGIN_MS = 1_000
"""G-7: what is kept of the platform's time when bodies are handed over otherwise than inline."""

DOWNLOAD_S = 600
"""G-6: how long a download URL works, unless the credentials that sign it end earlier."""

RESPONSE_BYTES = 6_291_556
"""G-7: the encoded response a Lambda function may return."""

GRAPH_NODES = 500
"""H: nodes that `GET /v1/graph` returns before it says that it was cut."""

METADATA_VALUE_BYTES, DISPLAY_NAME_BYTES = 256, 512
"""X-10: what a File Search store takes, in UTF-8, of one metadata value and of a display name."""

IMPORT_CLAIM_S = 3_600.0
"""X-10: an importer that began longer ago is taken for dead; it lives for minutes."""

STRAYS_SEARCH_S = 60.0
"""X-10: what an importer spends on looking for a dead one's upload; the sweep looks everywhere."""

SWEEP_MARGIN_S = 30.0
"""X-10: the time a sweep leaves for the uploads of its last page."""

IMPORT_FORGOTTEN_S = 30 * 24 * 3_600.0
"""X-10: how long the record of a document is kept that is in the store no more; several sweeps fit."""

GEMINI_PAGE, GEMINI_NAME_CHARS = 20, 512
"""G-2, X-10: documents in one page of a store's listing, and the longest display name: the service's own."""

LINES_WARNED = 20
"""G-8: lines of one document that are named for one character that cannot be seen; all are counted."""

MISSING_TOLD, MISSING_CHARS = 50, 400
"""G-8: what a model is told of all that is missing: so many entries, so many characters each."""

CLIENT_TIMEOUT_S = 30.0
"""G-7: as long as API Gateway waits for an answer; a client that waits longer waits for nothing."""

MEDIA_TYPE_CHARS = 127
"""H: the longest content type that an upload may have; RFC 6838 bounds either half of it to as many."""

PUSHED_AT_ONCE = 8
"""L: documents that `groundwire push` validates or uploads side by side."""
