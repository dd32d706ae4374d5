"""The API's resources: for each method of each address, which query or command of the engine answers it."""
