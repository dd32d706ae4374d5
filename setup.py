"""Finds the packages of all components: setup.cfg, where the rest stands, can search one folder only."""

from setuptools import find_packages, setup

#: The simulator is a distribution of its own.
FOLDERS = ("service", "placement", "proxy", "enforcer", "web")

FOLDER_OF = {package: folder for folder in FOLDERS for package in find_packages(folder)}

setup(
    packages=sorted(FOLDER_OF),
    package_dir={
        package: f"{folder}/{package}" for package, folder in FOLDER_OF.items() if "." not in package
    },
)
