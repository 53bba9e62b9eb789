"""From the user's arrays to the encoded rows that networks train on."""
