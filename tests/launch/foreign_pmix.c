/* Stands for a library that somebody else put where PMIX_PREFIX points: it tells whose rights it got. */
#include <stdio.h>
#include <unistd.h>

__attribute__((constructor)) static void loaded(void) {
    fprintf(stderr, "foreign library loaded with uid %d gid %d\n", (int)geteuid(), (int)getegid());
}
