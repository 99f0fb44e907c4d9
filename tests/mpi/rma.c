// One-sided communication, call by call: windows of every flavour, what they tell of themselves, epochs of every kind, accesses by every
// call, accumulates on every kind of element, and what is refused.
#include "check.h"
#include <complex.h>

static int next_rank(void) { return (rank + 1) % size; }
static int previous_rank(void) { return (rank + size - 1) % size; }

// Whether MPI_Win_allocate_shared can work: all ranks share memory.
static int memory_is_shared(void) {
    const char* wire = getenv("WEFT_WIRE");
    return size == 1 || wire == NULL || wire[0] == 0 || strcmp(wire, "shm") == 0;
}

static void check_attributes(MPI_Win win, void* base, MPI_Aint bytes, int unit, int flavor) {
    void* value;
    int flag = 0;
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag));
    CHECK(flag && value == base, "the base is %p, not %p", value, base);
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag));
    CHECK(flag && *(MPI_Aint*)value == bytes, "the size is %lld", (long long)*(MPI_Aint*)value);
    OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag));
    CHECK(flag && *(int*)value == unit, "the displacement unit is %d", *(int*)value);
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag));
    CHECK(flag && *(int*)value == flavor, "the flavour is %d", *(int*)value);
    OK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag));
    CHECK(flag && *(int*)value == MPI_WIN_UNIFIED, "the model is %d", *(int*)value);
}

// ---------------------------------------------------------------------------------------------- windows as objects

static int deleted;
static int on_delete(MPI_Win win, int keyval, void* value, void* extra) {
    (void)win; (void)keyval; (void)value; (void)extra;
    deleted++;
    return MPI_SUCCESS;
}
static int handled_class;
static MPI_Win handled_win;
static void on_error(MPI_Win* win, int* code, ...) {
    handled_win = *win;
    MPI_Error_class(*code, &handled_class);
}

static void objects(void) {
    int* base;
    MPI_Win win, same;
    OK(MPI_Win_allocate((MPI_Aint)(4 * sizeof(int)), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    check_attributes(win, base, (MPI_Aint)(4 * sizeof(int)), sizeof(int), MPI_WIN_FLAVOR_ALLOCATE);
    char name[MPI_MAX_OBJECT_NAME];
    int length = -1;
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == 0, "a new window is called %s", name);
    OK(MPI_Win_set_name(win, "counters"));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == 8 && strcmp(name, "counters") == 0, "the name is %s", name);
    same = MPI_Win_fromint(MPI_Win_toint(win));
    CHECK(same == win, "another window comes back from its number");

    int keyval, flag, mark;
    void* value;
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &keyval, NULL));
    OK(MPI_Win_set_attr(win, keyval, &mark));
    OK(MPI_Win_get_attr(win, keyval, &value, &flag));
    CHECK(flag && value == &mark, "the attribute was lost");
    OK(MPI_Win_delete_attr(win, keyval));
    CHECK(deleted == 1, "the delete function was called %d times", deleted);
    OK(MPI_Win_set_attr(win, keyval, &mark));

    MPI_Group mine, world;
    int result;
    OK(MPI_Win_get_group(win, &mine));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_compare(mine, world, &result));
    CHECK(result == MPI_IDENT, "the group of the window is another");
    OK(MPI_Group_free(&mine));
    OK(MPI_Group_free(&world));

    MPI_Info info;
    char text[64];
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_locks", "true"));
    OK(MPI_Info_set(info, "nobody_knows_this", "1"));
    OK(MPI_Win_set_info(win, info));
    OK(MPI_Info_free(&info));
    OK(MPI_Win_get_info(win, &info));
    length = sizeof text;
    OK(MPI_Info_get_string(info, "no_locks", &length, text, &flag));
    CHECK(flag && strcmp(text, "true") == 0, "the hint no_locks was lost");
    length = sizeof text;
    OK(MPI_Info_get_string(info, "accumulate_ordering", &length, text, &flag));
    CHECK(flag && strcmp(text, "rar,raw,war,waw") == 0, "accumulate_ordering is %s", text);
    length = sizeof text;
    OK(MPI_Info_get_string(info, "nobody_knows_this", &length, text, &flag));
    CHECK(!flag, "an unknown hint was kept");
    OK(MPI_Info_free(&info));

    MPI_Errhandler handler, got;
    OK(MPI_Win_get_errhandler(win, &got));
    CHECK(got == MPI_ERRORS_ARE_FATAL, "a new window has another error handler than MPI_ERRORS_ARE_FATAL");
    OK(MPI_Win_create_errhandler(on_error, &handler));
    OK(MPI_Win_set_errhandler(win, handler));
    OK(MPI_Win_call_errhandler(win, MPI_ERR_RANK));
    CHECK(handled_class == MPI_ERR_RANK && handled_win == win, "the handler was called for class %d", handled_class);
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, win));
    CHECK((handled_class == MPI_ERR_RMA_SYNC || !checks_arguments()) && handled_win == win, "the handler was called for class %d", handled_class);
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL && deleted == 2, "freeing left the handle, or called the delete function %d times", deleted);
    OK(MPI_Win_free_keyval(&keyval));
}

// Windows of one process, of none's memory, and of different sizes and units.
static void flavours(void) {
    double own[8];
    MPI_Win win;
    OK(MPI_Win_create(own, sizeof own, 8, MPI_INFO_NULL, MPI_COMM_SELF, &win));
    check_attributes(win, own, sizeof own, 8, MPI_WIN_FLAVOR_CREATE);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    check_attributes(win, NULL, 0, 1, MPI_WIN_FLAVOR_CREATE);
    OK(MPI_Win_free(&win));

    // Every rank has as many numbers as its rank says, and a unit of its own.
    int* base;
    const int n = rank + 1, unit = rank % 2 ? 1 : (int)sizeof(int);
    OK(MPI_Win_allocate((MPI_Aint)((size_t)n * sizeof(int)), unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    const int target = next_rank(), value = 1000 + rank;
    OK(MPI_Put(&value, 1, MPI_INT, target, target % 2 ? (MPI_Aint)((size_t)target * sizeof(int)) : target, 1, MPI_INT, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(base[n - 1] == 1000 + previous_rank(), "the last number is %d", base[n - 1]);
    OK(MPI_Win_free(&win));

    // Memory of MPI_Alloc_mem.
    OK(MPI_Alloc_mem(64, MPI_INFO_NULL, &base));
    OK(MPI_Win_create(base, 64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, target, 3, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK(base[3] == 1000 + previous_rank(), "the number is %d", base[3]);
    OK(MPI_Win_free(&win));
    OK(MPI_Free_mem(base));
}

static void shared_window(int apart) {
    MPI_Info info;
    MPI_Win win;
    int64_t* base;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "alloc_shared_noncontig", apart ? "true" : "false"));
    OK(MPI_Win_allocate_shared((rank + 1) * 8, 8, info, MPI_COMM_WORLD, &base, &win));
    check_attributes(win, base, (rank + 1) * 8, 8, MPI_WIN_FLAVOR_SHARED);
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int i = 0; i <= rank; i++) base[i] = rank * 100 + i;
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    int64_t* before = NULL;
    for (int r = 0; r < size; r++) {
        MPI_Aint bytes;
        int unit;
        int64_t* theirs;
        OK(MPI_Win_shared_query(win, r, &bytes, &unit, &theirs));
        CHECK(bytes == (r + 1) * 8 && unit == 8, "rank %d has %lld bytes in units of %d", r, (long long)bytes, unit);
        CHECK(r != rank || theirs == base, "this rank's own part is elsewhere");
        for (int i = 0; i <= r; i++) CHECK(theirs[i] == r * 100 + i, "number %d of rank %d is %lld", i, r, (long long)theirs[i]);
        if (!apart && r > 0) CHECK(theirs == before + r, "the part of rank %d does not follow that of rank %d", r, r - 1);
        before = theirs;
    }
    MPI_Aint bytes;
    int unit;
    void *first, *zeroth;
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &first));
    OK(MPI_Win_shared_query(win, 0, &bytes, &unit, &zeroth));
    CHECK(first == zeroth, "MPI_PROC_NULL does not stand for the first part");
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Info_free(&info));
    OK(MPI_Win_free(&win));
}

static void dynamic_window(void) {
    int *one = malloc(400), *two = malloc(400);
    MPI_Win win;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    check_attributes(win, MPI_BOTTOM, 0, 1, MPI_WIN_FLAVOR_DYNAMIC);
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_attach(win, one, 400));
    OK(MPI_Win_attach(win, two, 400));
    FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(win, one + 1, 4));
    FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_shared_query(win, 0, &(MPI_Aint){0}, &(int){0}, &(void*){NULL}));
    MPI_Aint mine, theirs;
    OK(MPI_Get_address(two, &mine));
    OK(MPI_Sendrecv(&mine, 1, MPI_AINT, previous_rank(), 0, &theirs, 1, MPI_AINT, next_rank(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    two[7] = -1;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win));
    OK(MPI_Put(&rank, 1, MPI_INT, next_rank(), MPI_Aint_add(theirs, 28), 1, MPI_INT, win));
    OK(MPI_Win_unlock(next_rank(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(two[7] == previous_rank(), "the number is %d", two[7]);
    OK(MPI_Win_detach(win, one));
    FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(win, one));
    OK(MPI_Win_free(&win));
    free(one);
    free(two);
}

// --------------------------------------------------------------------------------------------------------- epochs

// Posts to the previous rank and accesses the next one, several times, with late processes.
static void general_active(void) {
    int* base;
    MPI_Win win;
    MPI_Group world, before, after;
    const int previous = previous_rank(), next = next_rank();
    OK(MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &previous, &before));
    OK(MPI_Group_incl(world, 1, &next, &after));
    for (int i = 0; i < 20; i++) {
        if (i % 7 == rank) sleep_ms(2);
        base[0] = -1;
        OK(MPI_Win_post(before, 0, win));
        OK(MPI_Win_start(after, 0, win));
        const int value = rank * 1000 + i;
        int got = -7;
        OK(MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win));
        if (i > 0) OK(MPI_Get(&got, 1, MPI_INT, next, 1, 1, MPI_INT, win));
        OK(MPI_Win_complete(win));
        CHECK(i == 0 || got == next * 10 + i - 1, "round %d: got %d", i, got);
        if (i % 2) OK(MPI_Win_wait(win));
        else for (int done = 0; !done;) OK(MPI_Win_test(win, &done));
        CHECK(base[0] == previous * 1000 + i, "round %d: %d was put", i, base[0]);
        base[1] = rank * 10 + i;
    }
    OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
    OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&before));
    OK(MPI_Group_free(&after));
    OK(MPI_Win_free(&win));
}

// An exclusive lock excludes: what is read, changed and written back under it is not lost.
static void exclusive(int rounds) {
    int64_t* base;
    MPI_Win win;
    OK(MPI_Win_allocate(16, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    base[0] = base[1] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < rounds; i++) {
        int64_t both[2];
        const int target = i % size;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        OK(MPI_Get(both, 2, MPI_INT64_T, target, 0, 2, MPI_INT64_T, win));
        OK(MPI_Win_flush(target, win));
        CHECK(both[0] == both[1], "half of an update was read: %lld, %lld", (long long)both[0], (long long)both[1]);
        both[0]++;
        both[1]++;
        OK(MPI_Put(&both[0], 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win));
        OK(MPI_Put(&both[1], 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, win));
        OK(MPI_Win_unlock(target, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    const int64_t mine = base[0];
    OK(MPI_Win_unlock(rank, win));
    int64_t total;
    OK(MPI_Allreduce(&mine, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    CHECK(total == (int64_t)rounds * size, "%lld of %lld updates remain", (long long)total, (long long)rounds * size);
    OK(MPI_Win_free(&win));
}

// Nothing is needed of a target that waits for something else. (By messages it must be in MPI, as it is here.)
static void passive(void) {
    int* base;
    MPI_Win win;
    OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    *base = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        int got = 0;
        for (int i = 1; i < size; i++) OK(MPI_Recv(&got, 1, MPI_INT, i, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        CHECK(*base == size - 1, "%d of %d added", *base, size - 1);
        OK(MPI_Win_unlock(0, win));
    } else {
        const int one = 1;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win));
        OK(MPI_Win_flush_local(0, win));
        OK(MPI_Win_flush(0, win));
        OK(MPI_Win_unlock(0, win));
        OK(MPI_Send(&one, 1, MPI_INT, 0, 5, MPI_COMM_WORLD));
    }
    OK(MPI_Win_free(&win));
}

// ------------------------------------------------------------------------------------------------------- accesses

// Accumulates on elements that no instruction updates: all ranks to rank 0.
static void wide_elements(void) {
    struct { double value; int index; } *pairs, low = {100.0 - rank, rank}, old;
    double _Complex *sums, mine = 1.0 + 2.0 * I;
    MPI_Win win, win2;
    OK(MPI_Win_allocate((MPI_Aint)sizeof *pairs, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &pairs, &win));
    OK(MPI_Win_allocate((MPI_Aint)sizeof *sums, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &sums, &win2));
    pairs->value = 1000;
    pairs->index = -1;
    *sums = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_lock_all(0, win2));
    OK(MPI_Accumulate(&low, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT, MPI_MINLOC, win));
    for (int i = 0; i < 100; i++) OK(MPI_Accumulate(&mine, 1, MPI_C_DOUBLE_COMPLEX, 0, 0, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, win2));
    OK(MPI_Win_flush_all(win));
    OK(MPI_Win_unlock_all(win2));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Fetch_and_op(NULL, &old, MPI_DOUBLE_INT, 0, 0, MPI_NO_OP, win));
    OK(MPI_Win_flush_local_all(win));
    CHECK(old.value == 100.0 - (size - 1) && old.index == size - 1, "the least is %f of rank %d", old.value, old.index);
    OK(MPI_Win_unlock_all(win));
    if (rank == 0) CHECK(creal(*sums) == 100.0 * size && cimag(*sums) == 200.0 * size, "the sum is %f + %f i", creal(*sums), cimag(*sums));
    OK(MPI_Win_free(&win));
    OK(MPI_Win_free(&win2));
}

// Elements at addresses that are no multiple of their size, and accumulates with a derived type.
static void odd_places(void) {
    char* base;
    MPI_Win win;
    MPI_Datatype every_other;
    OK(MPI_Win_allocate(256, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    memset(base, 0, 256);
    OK(MPI_Type_vector(8, 1, 2, MPI_INT, &every_other));
    OK(MPI_Type_commit(&every_other));
    OK(MPI_Win_fence(0, win));
    const int64_t five = 5;
    const int numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    OK(MPI_Accumulate(&five, 1, MPI_INT64_T, next_rank(), 3, 1, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Accumulate(numbers, 8, MPI_INT, 0, 64, 1, every_other, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    int64_t got;
    memcpy(&got, base + 3, sizeof got);
    CHECK(got == 5, "the number at an odd place is %lld", (long long)got);
    if (rank == 0)
        for (int i = 0; i < 16; i++) {
            int x;
            memcpy(&x, base + 64 + 4 * i, sizeof x);
            CHECK(x == (i % 2 ? 0 : (i / 2 + 1) * size), "number %d is %d", i, x);
        }
    OK(MPI_Type_free(&every_other));
    OK(MPI_Win_free(&win));
}

static void requests(void) {
    int64_t* base;
    MPI_Win win;
    enum { many = 20000 };
    OK(MPI_Win_allocate(many * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    int64_t *out = malloc(many * 8), *in = malloc(many * 8);
    for (int i = 0; i < many; i++) out[i] = rank * 1000000 + i;
    MPI_Request r[4];
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Rput(out, many, MPI_INT64_T, next_rank(), 0, many, MPI_INT64_T, win, &r[0]));
    OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Rget(in, many, MPI_INT64_T, next_rank(), 0, many, MPI_INT64_T, win, &r[0]));
    OK(MPI_Raccumulate(out, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, MPI_SUM, win, &r[1]));
    OK(MPI_Rput(out, 0, MPI_INT64_T, 0, 0, 0, MPI_INT64_T, win, &r[2]));
    OK(MPI_Rget(in, 0, MPI_INT64_T, 0, 0, 0, MPI_INT64_T, win, &r[3]));
    OK(MPI_Waitall(4, r, MPI_STATUSES_IGNORE));
    CHECK(memcmp(in, out, many * 8) == 0, "other numbers came back");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int64_t old[2] = {-1, -1};
    OK(MPI_Rget_accumulate(out, 2, MPI_INT64_T, old, 2, MPI_INT64_T, next_rank(), 5, 2, MPI_INT64_T, MPI_REPLACE, win, &r[0]));
    OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
    CHECK(old[0] == out[5] && old[1] == out[6], "the old numbers were %lld, %lld", (long long)old[0], (long long)old[1]);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    free(out);
    free(in);
}

// ---------------------------------------------------------------------------------------------- what is refused

static void refused(void) {
    int* base;
    int x = 0, y = 0;
    MPI_Win win, none;
    MPI_Op op;
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_SIZE, MPI_Win_allocate(-1, 1, MPI_INFO_NULL, comm, &base, &none));
    FAILS(MPI_ERR_DISP, MPI_Win_create(&x, 4, 0, MPI_INFO_NULL, comm, &none));
    FAILS(MPI_ERR_BASE, MPI_Win_create(NULL, 4, 1, MPI_INFO_NULL, comm, &none));
    FAILS(MPI_ERR_DISP, MPI_Win_allocate(4, rank == size - 1 ? -4 : 4, MPI_INFO_NULL, comm, &base, &none));   // on one rank: on all
    OK(MPI_Win_allocate(40, 4, MPI_INFO_NULL, comm, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_complete(win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_wait(win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush(0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
    FAILS(MPI_ERR_LOCKTYPE, MPI_Win_lock(3, 0, 0, win));
    FAILS(MPI_ERR_ASSERT, MPI_Win_lock(MPI_LOCK_SHARED, 0, 1, win));
    FAILS(MPI_ERR_ASSERT, MPI_Win_fence(1, win));
    FAILS(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win));
    FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_attach(win, &x, 4));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_free(&win));
    FAILS(MPI_ERR_RANK, MPI_Put(&x, 1, MPI_INT, size, 0, 1, MPI_INT, win));
    FAILS(MPI_ERR_RANK, MPI_Get(&x, 1, MPI_INT, -1, 0, 1, MPI_INT, win));
    FAILS(MPI_ERR_DISP, MPI_Put(&x, 1, MPI_INT, 0, -1, 1, MPI_INT, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Put(&x, 1, MPI_INT, 0, 10, 1, MPI_INT, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Get(&x, 1, MPI_INT, 0, (MPI_Aint)1 << 62, 1, MPI_INT, win));
    FAILS(MPI_ERR_COUNT, MPI_Put(&x, -1, MPI_INT, 0, 0, 1, MPI_INT, win));
    FAILS(MPI_ERR_COUNT, MPI_Put(&x, 1, MPI_INT, 0, 0, -1, MPI_INT, win));
    FAILS(MPI_ERR_TYPE, MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_DATATYPE_NULL, win));
    FAILS(MPI_ERR_ARG, MPI_Put(&x, 1, MPI_INT, 0, 0, 2, MPI_INT, win));
    FAILS(MPI_ERR_OP, MPI_Accumulate(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_MINLOC, win));
    OK(MPI_Op_create((MPI_User_function*)(void*)on_error, 1, &op));
    FAILS(MPI_ERR_OP, MPI_Accumulate(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, op, win));
    OK(MPI_Op_free(&op));
    FAILS(MPI_ERR_TYPE, MPI_Compare_and_swap(&x, &x, &y, MPI_FLOAT, 0, 0, win));
    FAILS(MPI_ERR_BUFFER, MPI_Fetch_and_op(NULL, &y, MPI_INT, 0, 0, MPI_SUM, win));
    OK(MPI_Put(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, MPI_PROC_NULL, 0, win));
    OK(MPI_Win_unlock(MPI_PROC_NULL, win));
    OK(MPI_Win_free(&win));
    FAILS(MPI_ERR_WIN, MPI_Win_fence(0, MPI_WIN_NULL));
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    OK(MPI_Win_get_name(MPI_WIN_NULL, name, &length));
    CHECK(strcmp(name, "MPI_WIN_NULL") == 0, "the null window is called %s", name);
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    objects();
    flavours();
    if (memory_is_shared()) {
        shared_window(0);
        shared_window(1);
    }
    dynamic_window();
    general_active();
    exclusive(argc > 1 ? atoi(argv[1]) : 200);
    passive();
    wide_elements();
    odd_places();
    requests();
    refused();
    return finish();
}
