// Predefined attributes, keyvals with callbacks, and what MPI_Finalize owes to MPI_COMM_SELF: its attributes are deleted
// first, in reverse order, while MPI still works. The program proves the last by its exit status (`finalized_in_order`).
#include "check.h"

static int order[4], deleted, copied;

static int on_delete(MPI_Comm comm, int keyval, void* value, void* extra) {
    (void)comm, (void)keyval, (void)extra;
    if (deleted < 4) order[deleted] = (int)(intptr_t)value;
    deleted++;
    int flag = 0;
    MPI_Finalized(&flag);
    CHECK(!flag, "MPI is finalized inside a delete callback");
    MPI_Initialized(&flag);
    CHECK(flag, "MPI is not initialised inside a delete callback");
    // A message to oneself still works.
    int out = 5, in = 0;
    MPI_Sendrecv(&out, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    CHECK(in == 5, "no messages inside a delete callback");
    return MPI_SUCCESS;
}
static int on_copy(MPI_Comm comm, int keyval, void* extra, void* value, void* out, int* flag) {
    (void)comm, (void)keyval;
    copied++;
    CHECK(extra == &copied, "the extra state is lost");
    *(void**)out = (void*)((intptr_t)value + 100);
    *flag = 1;
    return MPI_SUCCESS;
}
static int refuse(MPI_Comm comm, int keyval, void* value, void* extra) {
    (void)comm, (void)keyval, (void)value, (void)extra;
    return MPI_ERR_OTHER;
}

static void predefined(void) {
    int *value, flag;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
    CHECK(flag && *value == 2147483647, "MPI_TAG_UB");
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag);
    CHECK(flag && (*value == 0 || *value == 1), "MPI_WTIME_IS_GLOBAL");
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag);
    CHECK(!flag || *value >= 0, "MPI_APPNUM");
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag);
    CHECK(!flag || *value >= size, "MPI_UNIVERSE_SIZE %d", *value);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag);
    CHECK(flag, "MPI_IO");
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
    CHECK(flag && *value >= MPI_ERR_LASTCODE, "MPI_LASTUSEDCODE");
    int class, before = *value;
    MPI_Add_error_class(&class);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
    CHECK(class > MPI_ERR_LASTCODE && *value >= class && *value > before, "class %d, last used %d", class, *value);
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL));
}

static void keyvals(void) {
    int key, flag;
    void* value;
    MPI_Comm dup;
    OK(MPI_Comm_create_keyval(on_copy, MPI_COMM_NULL_DELETE_FN, &key, &copied));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag));
    CHECK(!flag, "an attribute that was never set");
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, (void*)7));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag));
    CHECK(flag && value == (void*)7, "value %p", value);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_get_attr(dup, key, &value, &flag));
    CHECK(flag && value == (void*)107 && copied == 1, "after dup: %p, copied %d times", value, copied);
    OK(MPI_Comm_delete_attr(dup, key));
    OK(MPI_Comm_get_attr(dup, key, &value, &flag));
    CHECK(!flag, "a deleted attribute is still there");
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    const int old = key;
    OK(MPI_Comm_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID, "Comm_free_keyval leaves the key");
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, old, NULL));
    int gone = old;
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_free_keyval(&gone));   // nothing uses it any more

    // Copied as it is by MPI_COMM_DUP_FN, not at all by MPI_COMM_NULL_COPY_FN.
    int kept, lost;
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &kept, NULL));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &lost, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, kept, (void*)1));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, lost, (void*)2));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &dup));
    OK(MPI_Comm_get_attr(dup, kept, &value, &flag));
    CHECK(flag && value == (void*)1, "MPI_COMM_DUP_FN");
    OK(MPI_Comm_get_attr(dup, lost, &value, &flag));
    CHECK(!flag, "MPI_COMM_NULL_COPY_FN");
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_delete_attr(MPI_COMM_SELF, kept));
    OK(MPI_Comm_delete_attr(MPI_COMM_SELF, lost));

    // A delete callback that refuses keeps its attribute.
    int stubborn;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &stubborn, NULL));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &dup));
    MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
    OK(MPI_Comm_set_attr(dup, stubborn, (void*)3));
    CHECK(MPI_Comm_delete_attr(dup, stubborn) != MPI_SUCCESS, "a delete callback's error is lost");
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    predefined();
    keyvals();
    for (int i = 1; i <= 3; i++) {
        int key, again;
        OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL));
        OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, (void*)(intptr_t)i));
        again = key;
        OK(MPI_Comm_free_keyval(&key));     // lives on until the attribute is gone
        OK(MPI_Comm_free_keyval(&again));   // and to free it once more takes nothing away
        CHECK(again == MPI_KEYVAL_INVALID, "%d", again);
    }
    MPI_Finalize();
    const int in_order = deleted == 3 && order[0] == 3 && order[1] == 2 && order[2] == 1;
    if (!in_order) fprintf(stderr, "rank %d: %d delete callbacks in MPI_Finalize, in the order %d %d %d\n", rank, deleted, order[0], order[1], order[2]);
    return in_order ? 0 : 1;
}
