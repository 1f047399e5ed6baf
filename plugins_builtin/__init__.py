"""The plugins that come with the kernel, written with ``plugin_sdk`` alone."""
