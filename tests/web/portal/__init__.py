"""The plug-in of the engine's portal, in a page that treats plug-ins as the engine's does."""
