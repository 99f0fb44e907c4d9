// The tool interface starts and ends, any number of times and at any time, and is empty: all counts are 0, and what no call
// has given out is an error of its kind. Errors are returned, whatever the error handlers are.
#include "check.h"

static void before_and_after(void) {
    int n = -1, provided = -1;
    CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED, "before the start: %d", n);
    CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED, "the end comes before the start");
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, NULL) == MPI_T_ERR_INVALID, "null");
    CHECK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS && provided == MPI_THREAD_MULTIPLE, "%d", provided);
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS && provided >= MPI_THREAD_SINGLE, "%d", provided);
    CHECK(MPI_T_finalize() == MPI_SUCCESS, "first end");
    CHECK(MPI_T_cvar_get_num(&n) == MPI_SUCCESS && n == 0, "%d variables while it is still in use", n);
    CHECK(MPI_T_finalize() == MPI_SUCCESS, "second end");
    CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED, "after the end");
}

static void counts(void) {
    static int (*const calls[])(int*) = {MPI_T_cvar_get_num, MPI_T_pvar_get_num, MPI_T_event_get_num, MPI_T_source_get_num,
                                         MPI_T_category_get_num, MPI_T_category_changed};
    for (int i = 0; i < 6; i++) {
        int n = -1;
        CHECK(calls[i](&n) == MPI_SUCCESS && n == 0, "call %d says %d", i, n);
        CHECK(calls[i](NULL) == MPI_T_ERR_INVALID, "call %d of NULL", i);
    }
}

static void indices(void) {
    const int wanted = MPI_T_ERR_INVALID_INDEX;
    int length = 10, n = 3, many[3];
    char name[10];
    MPI_T_cvar_handle cvar;
    MPI_T_event_registration event;
    MPI_Count time;
    for (int i = -1; i < 2; i++) {
        CHECK(MPI_T_cvar_get_info(i, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == wanted, "%d", i);
        CHECK(MPI_T_cvar_handle_alloc(i, NULL, &cvar, &n) == wanted, "%d", i);
        CHECK(MPI_T_pvar_get_info(i, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == wanted, "%d", i);
        CHECK(MPI_T_event_get_info(i, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == wanted, "%d", i);
        CHECK(MPI_T_event_handle_alloc(i, NULL, MPI_INFO_NULL, &event) == wanted, "%d", i);
        CHECK(MPI_T_source_get_info(i, name, &length, NULL, NULL, NULL, NULL, NULL, NULL) == wanted, "%d", i);
        CHECK(MPI_T_source_get_timestamp(i, &time) == wanted, "%d", i);
        CHECK(MPI_T_category_get_info(i, name, &length, NULL, NULL, NULL, NULL, NULL) == wanted, "%d", i);
        CHECK(MPI_T_category_get_num_events(i, &n) == wanted, "%d", i);
        CHECK(MPI_T_category_get_cvars(i, 3, many) == wanted && MPI_T_category_get_pvars(i, 3, many) == wanted, "%d", i);
        CHECK(MPI_T_category_get_events(i, 3, many) == wanted && MPI_T_category_get_categories(i, 3, many) == wanted, "%d", i);
        CHECK(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &n, name, &length) == wanted, "%d", i);
        CHECK(MPI_T_enum_get_item(MPI_T_ENUM_NULL, i, &n, name, &length) == wanted, "%d", i);
    }
}

static void names_and_handles(void) {
    int index = -1;
    CHECK(MPI_T_cvar_get_index("nothing", &index) == MPI_T_ERR_INVALID_NAME, "%d", index);
    CHECK(MPI_T_pvar_get_index("nothing", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_T_ERR_INVALID_NAME, "%d", index);
    CHECK(MPI_T_event_get_index("nothing", &index) == MPI_T_ERR_INVALID_NAME, "%d", index);
    CHECK(MPI_T_category_get_index("nothing", &index) == MPI_T_ERR_INVALID_NAME, "%d", index);
    CHECK(MPI_T_cvar_get_index(NULL, &index) == MPI_T_ERR_INVALID && MPI_T_cvar_get_index("x", NULL) == MPI_T_ERR_INVALID, "null");
    MPI_T_cvar_handle cvar = MPI_T_CVAR_HANDLE_NULL;
    CHECK(MPI_T_cvar_read(cvar, &index) == MPI_T_ERR_INVALID_HANDLE, "read");
    CHECK(MPI_T_cvar_write(cvar, &index) == MPI_T_ERR_INVALID_HANDLE, "write");
    CHECK(MPI_T_cvar_handle_free(&cvar) == MPI_T_ERR_INVALID_HANDLE, "free");
    CHECK(MPI_T_event_read(NULL, 0, &index) == MPI_T_ERR_INVALID_HANDLE, "event");
}

static void sessions(void) {
    MPI_T_pvar_session one, two, freed;
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    int n;
    CHECK(MPI_T_pvar_session_create(&one) == MPI_SUCCESS && MPI_T_pvar_session_create(&two) == MPI_SUCCESS, "create");
    CHECK(one != two && one != MPI_T_PVAR_SESSION_NULL && two != MPI_T_PVAR_SESSION_NULL, "%p %p", (void*)one, (void*)two);
    CHECK(MPI_T_pvar_handle_alloc(one, 0, NULL, &handle, &n) == MPI_T_ERR_INVALID_INDEX, "alloc");
    CHECK(MPI_T_pvar_read(one, handle, &n) == MPI_T_ERR_INVALID_HANDLE, "read");
    CHECK(MPI_T_pvar_start(one, handle) == MPI_T_ERR_INVALID_HANDLE, "start");
    CHECK(MPI_T_pvar_start(one, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS, "start all");
    CHECK(MPI_T_pvar_stop(two, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS, "stop all");
    freed = one;
    CHECK(MPI_T_pvar_session_free(&one) == MPI_SUCCESS && one == MPI_T_PVAR_SESSION_NULL, "free");
    CHECK(MPI_T_pvar_session_free(&freed) == MPI_T_ERR_INVALID_SESSION, "freed twice");
    CHECK(MPI_T_pvar_reset(freed, MPI_T_PVAR_ALL_HANDLES) == MPI_T_ERR_INVALID_SESSION, "reset");
    CHECK(MPI_T_pvar_session_free(NULL) == MPI_T_ERR_INVALID, "null");
    // The other one ends with the interface.
}

int main(int argc, char** argv) {
    int provided;
    before_and_after();
    OK(MPI_T_init_thread(MPI_THREAD_SERIALIZED, &provided));
    counts();
    start(&argc, &argv);
    counts();
    indices();
    names_and_handles();
    sessions();
    OK(MPI_T_finalize());
    before_and_after();
    finish();
    before_and_after();
    return 0;
}
