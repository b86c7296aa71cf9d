"""The page of `ironband view`: what it shows, and the server that it comes from."""
