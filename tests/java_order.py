"""An order that a real JVM gave, against which two of our own are held."""

#: Thirteen ids, and their places in the order in which a Java HashMap goes through them, as a JVM said.
IDS = (
    "a9ca60c7-3844-a599-6a85-87ad3bdd81b5",
    "c842b86a-0f8e-aab6-f442-ebe0c37e29e9",
    "7a0e05ed-42b1-0b05-0b71-7f809f5fe884",
    "be355509-cc8c-211b-fb9d-d0cbd99538c2",
    "4beaf50e-4074-3f2d-ca7c-f04f60255eac",
    "ac6db5dd-b074-41c3-6802-9f89a3959af6",
    "9f74713e-8f1a-19ab-5b59-45d37cb14808",
    "e1f26450-b72d-8130-5669-cf79fd0e345a",
    "fd091d5c-0d00-508b-83df-db2cf7cbce04",
    "c50501ce-740b-259a-8b78-d99e50e0f395",
    "628db083-bf80-52cf-e433-036192357e22",
    "6303c447-b0aa-496a-f5db-491c5401d8a2",
    "6499ba9a-5189-f2ea-01c7-a1d9b2c03879",
)
IN_JAVA = (11, 8, 10, 1, 4, 12, 6, 9, 3, 5, 0, 7, 2)
