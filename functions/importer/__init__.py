"""The importer: fills a File Search store, and lists those that others fill."""
