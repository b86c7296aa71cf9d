"""What captures tell of the fabric they come from: measurements that know nothing but packets and their times."""
