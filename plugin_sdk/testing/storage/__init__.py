"""The laws of a storage backend as tests, a module for each chapter. Collected by nobody: see `StorageContract`."""
