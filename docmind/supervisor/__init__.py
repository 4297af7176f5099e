"""Starts vector server, worker and web server, keeps them running, and leaves no process behind.

One thread, no Django: `python -m docmind.supervisor` stays small and starts at once. Each part runs in a session of its
own, tied to the supervisor's life (`tether`). A part that dies is started again with growing delays, after the rest of
its process group has been killed; one that keeps dying at once ends the whole with a non-zero status.
"""
