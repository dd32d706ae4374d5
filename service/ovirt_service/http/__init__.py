"""HTTP/1.1 for what is no web server: lean, bounded, on one event loop; who says nothing makes room."""
