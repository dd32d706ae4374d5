"""What commands and page answer today, word by word: the net under changes that should change no answer."""
