// Messages of random nested datatypes: every rank makes the same types from the same seed, so the receiver knows what
// must arrive. From a few bytes to megabytes, blocking and not, derived at one end or at both, synchronous too.
// Arguments: rounds, seed.
#include "check.h"

static uint64_t state;
static unsigned draw(unsigned n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

// A random type of integers, at most about `room` of them; its buffer begins at its true lower bound.
static MPI_Datatype make(int depth, int room) {
    if (depth == 0 || room < 2) return MPI_INT;
    MPI_Datatype old = make(depth - 1, room / 3), t, second;
    MPI_Aint lb, extent;
    MPI_Type_get_extent(old, &lb, &extent);
    int n = 1 + (int)draw(room < 24 ? 3 : 8), blocks[8], at[8];
    for (int i = 0, end = 0; i < 8; i++) {
        blocks[i] = (int)draw(3);
        at[i] = end + (int)draw(3);
        end = at[i] + blocks[i];
    }
    switch (draw(7)) {
    case 0: MPI_Type_contiguous(n, old, &t); break;
    case 1: MPI_Type_vector(n, 2, 3, old, &t); break;
    case 2: MPI_Type_create_hvector(n, 1, extent + 8, old, &t); break;
    case 3: MPI_Type_indexed(n, blocks, at, old, &t); break;
    case 4: MPI_Type_create_indexed_block(n, 1, (int[]){0, 3, 4, 9, 12, 13, 17, 20}, old, &t); break;
    case 5: MPI_Type_create_subarray(2, (int[]){4, 5}, (int[]){2, 3}, (int[]){1, 1}, draw(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old, &t); break;
    default:
        second = make(depth - 1, room / 3);
        MPI_Type_create_struct(2, (int[]){2, 1}, (MPI_Aint[]){0, 2 * extent + 4}, (MPI_Datatype[]){old, second}, &t);
        if (second != MPI_INT) MPI_Type_free(&second);
    }
    if (old != MPI_INT) MPI_Type_free(&old);
    return t;
}

// Memory for `count` elements, and where MPI's buffer argument points in it.
struct memory {
    char *bytes, *origin;
    size_t size;
};
static struct memory room_for(MPI_Datatype t, int count, unsigned fill) {
    MPI_Aint lb, extent, true_lb, true_extent;
    MPI_Type_get_extent(t, &lb, &extent);
    MPI_Type_get_true_extent(t, &true_lb, &true_extent);
    struct memory m;
    m.size = (size_t)(true_extent + extent * (count > 0 ? count - 1 : 0));
    m.bytes = malloc(m.size + 1);
    for (size_t i = 0; i < m.size; i++) m.bytes[i] = (char)(fill + i * 7 + (i >> 8));
    m.origin = m.bytes - true_lb;
    return m;
}

static void round_trip(int round) {
    static const int targets[] = {8, 64, 1000, 5000, 70000, 1 << 20, 3 << 20};
    MPI_Datatype t = make(1 + (int)draw(4), 300);
    MPI_Type_commit(&t);
    int bytes, target = targets[draw(7)], way = (int)draw(4), both = (int)draw(2);
    MPI_Type_size(t, &bytes);
    int count = bytes == 0 ? 3 : target / bytes + 1, total = bytes * count;
    struct memory source = room_for(t, count, (unsigned)round);
    char* packed = malloc((size_t)total + 1);
    int position = 0;
    OK(MPI_Pack(source.origin, count, t, packed, total, &position, MPI_COMM_WORLD));
    int peer = rank ^ 1;
    if (peer < size && rank % 2 == 0) {
        if (way == 0) OK(MPI_Send(source.origin, count, t, peer, round, MPI_COMM_WORLD));
        else if (way == 1) OK(MPI_Ssend(source.origin, count, t, peer, round, MPI_COMM_WORLD));
        else if (way == 2) OK(MPI_Send(packed, total / 4, MPI_INT, peer, round, MPI_COMM_WORLD));
        else {
            MPI_Request r;
            OK(MPI_Isend(source.origin, count, t, peer, round, MPI_COMM_WORLD, &r));
            OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        }
    } else if (peer < size) {
        MPI_Status s;
        int got;
        if (both || way == 2) {
            struct memory target_memory = room_for(t, count, 99), expected = room_for(t, count, 99);
            OK(MPI_Recv(target_memory.origin, count, t, peer, round, MPI_COMM_WORLD, &s));
            position = 0;
            OK(MPI_Unpack(packed, total, &position, expected.origin, count, t, MPI_COMM_WORLD));
            CHECK(memcmp(target_memory.bytes, expected.bytes, expected.size) == 0, "round %d, %d bytes, way %d", round, total, way);
            free(target_memory.bytes);
            free(expected.bytes);
        } else {
            char* plain = malloc((size_t)total + 1);
            MPI_Request r;
            OK(MPI_Irecv(plain, total / 4, MPI_INT, peer, round, MPI_COMM_WORLD, &r));
            OK(MPI_Wait(&r, &s));
            CHECK(memcmp(plain, packed, (size_t)total) == 0, "round %d, %d bytes, way %d", round, total, way);
            free(plain);
        }
        OK(MPI_Get_elements(&s, t, &got));
        CHECK(got == total / 4, "round %d: %d elements of %d", round, got, total / 4);
    }
    free(source.bytes);
    free(packed);
    if (t != MPI_INT) OK(MPI_Type_free(&t));
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 200;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (int i = 0; i < rounds; i++) round_trip(i);
    return finish();
}
