// Info objects: set, get, order, duplicates, deletion, limits, MPI_INFO_ENV; and what works before MPI_Init and after MPI_Finalize.
#include "check.h"

/* MPI_Info_create_env gives the same at any time. */
struct pairs {
    int n;
    char key[32][MPI_MAX_INFO_KEY + 1], value[32][256];
};

static void read_pairs(MPI_Info info, struct pairs* p) {
    memset(p, 0, sizeof *p);
    MPI_Info_get_nkeys(info, &p->n);
    CHECK(p->n <= 32, "%d keys", p->n);
    for (int i = 0; i < p->n; i++) {
        int length = sizeof p->value[i], flag = 0;
        MPI_Info_get_nthkey(info, i, p->key[i]);
        MPI_Info_get_string(info, p->key[i], &length, p->value[i], &flag);
        CHECK(flag, "%s has no value", p->key[i]);
    }
}

static void same_environment(int argc, char** argv, const char* when) {
    static struct pairs first[2], now;
    static int called;
    for (int with = 0; with < 2; with++) {
        MPI_Info info;
        MPI_Info_create_env(with ? argc : 0, with ? argv : NULL, &info);
        read_pairs(info, called ? &now : &first[with]);
        if (called) CHECK(memcmp(&now, &first[with], sizeof now) == 0, "%s: %d keys, at first %d", when, now.n, first[with].n);
        MPI_Info_free(&info);
    }
    called = 1;
}

static void whole_life(void) {
    MPI_Info info, copy;
    int n, flag, length;
    char value[64], key[MPI_MAX_INFO_KEY + 1];
    MPI_Info_create(&info);
    MPI_Info_get_nkeys(info, &n);
    CHECK(n == 0, "%d keys", n);
    MPI_Info_set(info, "one", "1");
    MPI_Info_set(info, "two", "22");
    MPI_Info_set(info, "three", "333");
    MPI_Info_set(info, "two", "twenty-two");
    MPI_Info_get_nkeys(info, &n);
    CHECK(n == 3, "%d keys", n);
    for (int i = 0; i < n; i++) {
        static const char* const names[] = {"one", "two", "three"};
        MPI_Info_get_nthkey(info, i, key);
        CHECK(!strcmp(key, names[i]), "key %d is %s", i, key);
    }
    length = sizeof value;
    MPI_Info_get_string(info, "two", &length, value, &flag);
    CHECK(flag && !strcmp(value, "twenty-two") && length == 11, "%s, length %d", value, length);
    length = 4;
    MPI_Info_get_string(info, "two", &length, value, &flag);
    CHECK(flag && !strcmp(value, "twe") && length == 11, "%s, length %d", value, length);
    length = 0;
    strcpy(value, "untouched");
    MPI_Info_get_string(info, "two", &length, value, &flag);
    CHECK(flag && !strcmp(value, "untouched") && length == 11, "%s, length %d", value, length);
    MPI_Info_get_string(info, "four", &length, value, &flag);
    CHECK(!flag, "a key that was never set");
    MPI_Info_dup(info, &copy);
    MPI_Info_delete(info, "one");
    MPI_Info_get_nkeys(info, &n);
    CHECK(n == 2, "%d keys after a deletion", n);
    MPI_Info_get_nkeys(copy, &n);
    CHECK(n == 3, "%d keys in the copy", n);
    MPI_Info_free(&info);
    MPI_Info_free(&copy);
    CHECK(info == MPI_INFO_NULL && copy == MPI_INFO_NULL, "Info_free leaves the handle");
}

int main(int argc, char** argv) {
    whole_life();  // allowed before MPI_Init
    same_environment(argc, argv, "before MPI_Init");
    start(&argc, &argv);
    same_environment(argc, argv, "after MPI_Init");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    whole_life();
    MPI_Info info;
    int n, flag, length;
    char value[MPI_MAX_INFO_VAL + 1];
    MPI_Info_create(&info);
    FAILS(MPI_ERR_INFO_NOKEY, MPI_Info_delete(info, "missing"));
    FAILS(MPI_ERR_INFO_KEY, MPI_Info_set(info, "", "value"));
    char* big = malloc(3 * MPI_MAX_INFO_VAL);
    memset(big, 'x', 3 * MPI_MAX_INFO_VAL);
    big[MPI_MAX_INFO_KEY + 1] = 0;
    FAILS(MPI_ERR_INFO_KEY, MPI_Info_set(info, big, "value"));
    big[MPI_MAX_INFO_KEY - 1] = 0;
    OK(MPI_Info_set(info, big, "value"));
    OK(MPI_Info_delete(info, big));
    free(big);
    OK(MPI_Info_free(&info));
    FAILS(MPI_ERR_INFO, MPI_Info_get_nkeys(MPI_INFO_NULL, &n));

    OK(MPI_Info_get_nkeys(MPI_INFO_ENV, &n));
    length = sizeof value;
    OK(MPI_Info_get_string(MPI_INFO_ENV, "thread_level", &length, value, &flag));
    CHECK(!flag || !strncmp(value, "MPI_THREAD_", 11), "thread_level is %s", value);
    MPI_Finalize();
    whole_life();  // and after MPI_Finalize
    same_environment(argc, argv, "after MPI_Finalize");
    return 0;
}
