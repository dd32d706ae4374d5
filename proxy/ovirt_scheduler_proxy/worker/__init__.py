"""What runs in the processes that hold plugins: standard library only, any Python from 3.9 on."""
