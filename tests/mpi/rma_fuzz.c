// Random accesses to windows against a sequential oracle, under every way of synchronisation. Each origin has a stripe of its own in every
// part, and a mirror of it, so it knows what it must find; all add to a common counter besides.
// usage: rma_fuzz SEED ROUNDS
#include "check.h"

enum { stripe = 4096, common = 64 };
enum { by_fence, by_post, by_lock, by_lock_all, ways };
enum { by_create, by_allocate, by_shared, by_dynamic, flavors };

static const char* const way_names[] = {"fence", "post and start", "lock", "lock_all"};
static uint64_t state;
static char* base;           // of this process's part
static MPI_Aint* bases;      // of all, where displacements are addresses
static char* mirrors;        // stripe bytes for each target
static MPI_Win win;
static MPI_Group everybody;
static int way, flavor;

static MPI_Aint place(int target, size_t at) {
    MPI_Aint inside = (MPI_Aint)common + (MPI_Aint)rank * stripe + (MPI_Aint)at;
    return flavor == by_dynamic ? bases[target] + inside : inside;
}

static void begin(int target, int alone) {
    if (way == by_post) {
        OK(MPI_Win_post(everybody, 0, win));
        OK(MPI_Win_start(everybody, 0, win));
    }
    if (way == by_lock) OK(MPI_Win_lock(alone ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, win));
}

static void end(int target) {
    switch (way) {
    case by_fence: OK(MPI_Win_fence(0, win)); break;
    case by_post:
        OK(MPI_Win_complete(win));
        if (below(&state, 2)) {
            OK(MPI_Win_wait(win));
        } else {
            for (int done = 0; !done;) OK(MPI_Win_test(win, &done));
        }
        break;
    case by_lock: OK(MPI_Win_unlock(target, win)); break;
    default: OK(below(&state, 2) ? MPI_Win_flush(target, win) : MPI_Win_flush_all(win));
    }
}

// A layout of `bytes` bytes in `room`: a run, a vector, or blocks here and there.
static MPI_Datatype layout(size_t bytes, size_t room) {
    MPI_Datatype t;
    size_t piece = 1 + below(&state, 40);
    size_t count = bytes / piece, rest = bytes % piece, stride = count > 1 ? (room - rest) / count : 0;
    int lengths[3] = {(int)(count * piece), (int)rest, 0};
    MPI_Aint at[3] = {0, 0, 0};
    MPI_Datatype types[2] = {MPI_BYTE, MPI_BYTE}, vector;
    if (count < 2 || below(&state, 3) == 0) {
        OK(MPI_Type_contiguous((int)bytes, MPI_BYTE, &t));
    } else {
        OK(MPI_Type_create_hvector((int)count, (int)piece, (MPI_Aint)stride, MPI_BYTE, &vector));
        types[0] = vector;
        lengths[0] = 1;
        at[1] = (MPI_Aint)(count * stride);
        OK(MPI_Type_create_struct(2, lengths, at, types, &t));
        OK(MPI_Type_free(&vector));
    }
    OK(MPI_Type_commit(&t));
    return t;
}

// Moves data as the layouts say, by MPI's own packing.
static void move(const void* from, MPI_Datatype from_type, void* to, MPI_Datatype to_type, int bytes) {
    char* packed = malloc((size_t)bytes + 1);
    int at = 0;
    OK(MPI_Pack(from, 1, from_type, packed, bytes, &at, MPI_COMM_SELF));
    at = 0;
    OK(MPI_Unpack(packed, bytes, &at, to, 1, to_type, MPI_COMM_SELF));
    free(packed);
}

static void finish_request(MPI_Request* r) {
    OK(MPI_Wait(r, MPI_STATUS_IGNORE));
    CHECK(*r == MPI_REQUEST_NULL, "the request stays");
}

static void put_or_get(int target, int puts) {
    size_t bytes = 1 + below(&state, below(&state, 2) ? 64 : stripe / 2), at = below(&state, stripe / 2);
    MPI_Datatype mine = layout(bytes, stripe), theirs = layout(bytes, stripe - at);
    char *buffer = malloc(stripe), *want = malloc(stripe), *there = mirrors + (size_t)target * stripe + at;
    const int asks = (way == by_lock || way == by_lock_all) && below(&state, 2);
    MPI_Request r;
    fill(buffer, stripe, random32(&state));
    memcpy(want, buffer, stripe);
    begin(target, 0);
    if (puts) {
        move(buffer, mine, there, theirs, (int)bytes);
        if (asks) OK(MPI_Rput(buffer, 1, mine, target, place(target, at), 1, theirs, win, &r));
        else OK(MPI_Put(buffer, 1, mine, target, place(target, at), 1, theirs, win));
    } else {
        move(there, theirs, want, mine, (int)bytes);
        if (asks) OK(MPI_Rget(buffer, 1, mine, target, place(target, at), 1, theirs, win, &r));
        else OK(MPI_Get(buffer, 1, mine, target, place(target, at), 1, theirs, win));
    }
    if (asks) finish_request(&r);
    end(target);
    CHECK(memcmp(buffer, want, stripe) == 0, "%s of %zu bytes at %zu of rank %d gave other data", puts ? "put" : "get", bytes, at, target);
    OK(MPI_Type_free(&mine));
    OK(MPI_Type_free(&theirs));
    free(buffer);
    free(want);
}

static MPI_Op arithmetic[5];
static MPI_Datatype kinds[6];
static const int kind_bytes[] = {1, 2, 4, 8, 4, 16};

// Several accumulates in a row without completing each: their order is kept.
static void accumulate_some(int target) {
    const int k = (int)below(&state, 6), bytes = kind_bytes[k];
    const int n = 1 + (int)below(&state, below(&state, 2) ? 4 : (uint32_t)(stripe / 2 / bytes)), times = 1 + (int)below(&state, 4);
    const size_t at = below(&state, (uint32_t)(stripe - n * bytes) / 16 + 1) * 16 % (size_t)(stripe - n * bytes + 1);
    char* there = mirrors + (size_t)target * stripe + at;
    char *values = malloc((size_t)(times * n * bytes)), *old = malloc((size_t)(times * n * bytes)), *want = malloc((size_t)(times * n * bytes));
    begin(target, 0);
    for (int i = 0; i < times; i++) {
        char *mine = values + i * n * bytes, *result = old + i * n * bytes;
        const MPI_Op op = k == 5 ? below(&state, 2) ? MPI_SUM : MPI_REPLACE : arithmetic[below(&state, 5)];
        for (int j = 0; j < n * bytes; j++) mine[j] = (char)below(&state, 3);
        if (k == 4) for (int j = 0; j < n; j++) ((float*)(void*)mine)[j] = (float)below(&state, 100);
        if (k == 5) for (int j = 0; j < 2 * n; j++) ((double*)(void*)mine)[j] = below(&state, 100);
        memcpy(want + i * n * bytes, there, (size_t)(n * bytes));
        const int fetches = (int)below(&state, 2);
        if (!fetches) memcpy(result, there, (size_t)(n * bytes));
        if (op == MPI_REPLACE) memcpy(there, mine, (size_t)(n * bytes));
        else OK(MPI_Reduce_local(mine, there, n, kinds[k], op));
        if (!fetches) OK(MPI_Accumulate(mine, n, kinds[k], target, place(target, at), n, kinds[k], op, win));
        else if (n == 1) OK(MPI_Fetch_and_op(mine, result, kinds[k], target, place(target, at), op, win));
        else OK(MPI_Get_accumulate(mine, n, kinds[k], result, n, kinds[k], target, place(target, at), n, kinds[k], op, win));
    }
    end(target);
    CHECK(memcmp(old, want, (size_t)(times * n * bytes)) == 0, "accumulates of %d elements of %d bytes at %zu of rank %d gave other values", n,
          bytes, at, target);
    free(values);
    free(old);
    free(want);
}

static void swap_one(int target) {
    const size_t at = below(&state, stripe / 8) * 8;
    char* there = mirrors + (size_t)target * stripe + at;
    int64_t now, expected, desired = (int64_t)random32(&state), result = 77;
    memcpy(&now, there, sizeof now);
    expected = below(&state, 2) ? now : now + 1;
    begin(target, below(&state, 2) != 0);
    OK(MPI_Compare_and_swap(&desired, &expected, &result, MPI_INT64_T, target, place(target, at), win));
    end(target);
    CHECK(result == now, "compare-and-swap found %lld, not %lld", (long long)result, (long long)now);
    if (expected == now) memcpy(there, &desired, sizeof desired);
}

static void count_up(int target) {
    const int64_t one = 1;
    begin(target, 0);
    OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, flavor == by_dynamic ? bases[target] : 0, 1, MPI_INT64_T, MPI_SUM, win));
    end(target);
}

static void make_window(MPI_Aint bytes) {
    if (flavor == by_create) {
        base = malloc((size_t)bytes);
        OK(MPI_Win_create(base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else if (flavor == by_allocate) {
        OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    } else if (flavor == by_shared) {
        OK(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    } else {
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        base = malloc((size_t)bytes);
        OK(MPI_Win_attach(win, base, bytes));
    }
    MPI_Aint mine;
    OK(MPI_Get_address(base, &mine));
    OK(MPI_Allgather(&mine, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD));
    memset(base, 0, (size_t)bytes);
    memset(mirrors, 0, (size_t)size * stripe);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void try_all(int rounds) {
    int64_t counted = 0;
    make_window(common + (MPI_Aint)size * stripe);
    if (way == by_fence) OK(MPI_Win_fence(0, win));
    if (way == by_lock_all) OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < rounds; i++) {
        const int target = (int)below(&state, (uint32_t)size);
        switch (below(&state, 6)) {
        case 0: case 1: put_or_get(target, 1); break;
        case 2: put_or_get(target, 0); break;
        case 3: accumulate_some(target); break;
        case 4: swap_one(target); break;
        default: count_up((rank + i) % size); counted++;
        }
    }
    if (way == by_fence) OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    if (way == by_lock_all) OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    // What every origin believes is in this part, and the number of all counts.
    char* all = malloc((size_t)size * stripe);
    OK(MPI_Alltoall(mirrors, stripe, MPI_BYTE, all, stripe, MPI_BYTE, MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK(memcmp(base + common, all, (size_t)size * stripe) == 0, "%s: the window differs from the mirrors", way_names[way]);
    int64_t mine, total;
    memcpy(&mine, base, sizeof mine);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Allreduce(MPI_IN_PLACE, &counted, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Allreduce(&mine, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    CHECK(total == counted, "%s: %lld counts became %lld", way_names[way], (long long)counted, (long long)total);
    free(all);
    if (flavor == by_dynamic) OK(MPI_Win_detach(win, base));
    OK(MPI_Win_free(&win));
    if (flavor == by_dynamic || flavor == by_create) free(base);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int rounds = argc > 2 ? atoi(argv[2]) : 100;
    const MPI_Op some[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD, MPI_REPLACE};
    const MPI_Datatype types[] = {MPI_UINT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_FLOAT, MPI_C_DOUBLE_COMPLEX};
    memcpy(arithmetic, some, sizeof some);
    memcpy(kinds, types, sizeof types);
    bases = malloc(sizeof(MPI_Aint) * (size_t)size);
    mirrors = malloc((size_t)size * stripe);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &everybody));
    const char* wire = getenv("WEFT_WIRE");
    const int shares = size == 1 || wire == NULL || wire[0] == 0 || strcmp(wire, "shm") == 0;
    for (flavor = 0; flavor < flavors; flavor++)
        for (way = 0; way < ways; way++) {
            if (flavor == by_shared && !shares) continue;
            state = seed * 1000003u + (uint64_t)(flavor * ways + way) * 7919u + (uint64_t)rank * 104729u;
            try_all(rounds);
        }
    OK(MPI_Group_free(&everybody));
    free(bases);
    free(mirrors);
    return finish();
}
