"""What is to be planned in one cluster: who runs where, who may go where, and what the rules ask."""
