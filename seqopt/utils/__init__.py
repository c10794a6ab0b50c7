"""Tools that every room uses: checked arguments, the cache folder, files, packaged resources, worker processes."""
