/* nothing.c - a shared object that is no plug-in. */
extern int nothing;
int nothing;
