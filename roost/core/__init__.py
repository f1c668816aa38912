"""General helpers without domain terms; imports nothing else of Roost."""
