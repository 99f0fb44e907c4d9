// Derived datatypes and operations through the bindings: envelopes and contents of both widths, messages between different
// layouts, elements of a partial message, Pack and external32, user operations, and the errors of all these.
#include <stddef.h>

#include "check.h"

static void envelopes(void) {
    MPI_Datatype t, old;
    int ni, na, nd, combiner, ints[4];
    MPI_Count ci, ca, cc, cd, counts[8];
    MPI_Aint addresses[2];
    OK(MPI_Type_vector(3, 2, 4, MPI_INT, &t));
    OK(MPI_Type_get_envelope(t, &ni, &na, &nd, &combiner));
    CHECK(ni == 3 && na == 0 && nd == 1 && combiner == MPI_COMBINER_VECTOR, "%d %d %d %d", ni, na, nd, combiner);
    OK(MPI_Type_get_contents(t, 4, 0, 1, ints, NULL, &old));
    CHECK(ints[0] == 3 && ints[1] == 2 && ints[2] == 4 && old == MPI_INT, "%d %d %d", ints[0], ints[1], ints[2]);
    OK(MPI_Type_get_envelope_c(t, &ci, &ca, &cc, &cd, &combiner));
    CHECK(ci == 3 && ca == 0 && cc == 0 && cd == 1, "the classic form has no large counts");
    FAILS(MPI_ERR_ARG, MPI_Type_get_contents(t, 2, 0, 1, ints, NULL, &old));
    OK(MPI_Type_free(&t));

    MPI_Count lengths[] = {1, 2}, displs[] = {0, 16};
    MPI_Datatype olds[] = {MPI_DOUBLE, MPI_INT}, back[2];
    OK(MPI_Type_create_struct_c(2, lengths, displs, olds, &t));
    FAILS(MPI_ERR_TYPE, MPI_Type_get_envelope(t, &ni, &na, &nd, &combiner));
    FAILS(MPI_ERR_TYPE, MPI_Type_get_contents(t, 4, 2, 2, ints, addresses, back));
    OK(MPI_Type_get_envelope_c(t, &ci, &ca, &cc, &cd, &combiner));
    CHECK(ci == 0 && ca == 0 && cc == 5 && cd == 2 && combiner == MPI_COMBINER_STRUCT, "%d %d", (int)cc, combiner);
    OK(MPI_Type_get_contents_c(t, 0, 0, 5, 2, NULL, NULL, counts, back));
    CHECK(counts[0] == 2 && counts[2] == 2 && counts[4] == 16 && back[0] == MPI_DOUBLE && back[1] == MPI_INT, "contents");
    MPI_Count lb, extent;
    OK(MPI_Type_get_extent_c(t, &lb, &extent));
    CHECK(lb == 0 && extent == 24, "extent %d", (int)extent);
    OK(MPI_Type_free(&t));
    CHECK(t == MPI_DATATYPE_NULL, "a freed handle is null");
    FAILS(MPI_ERR_TYPE, MPI_Type_get_contents(MPI_INT, 0, 0, 0, NULL, NULL, NULL));
    t = MPI_INT;
    FAILS(MPI_ERR_TYPE, MPI_Type_free(&t));

    // An old type is the caller's own reference.
    MPI_Datatype inner;
    OK(MPI_Type_contiguous(2, MPI_CHAR, &inner));
    OK(MPI_Type_dup(inner, &t));
    OK(MPI_Type_free(&inner));
    OK(MPI_Type_get_contents(t, 0, 0, 1, NULL, NULL, &inner));
    OK(MPI_Type_free(&t));
    int bytes;
    OK(MPI_Type_size(inner, &bytes));
    CHECK(bytes == 2, "%d bytes", bytes);
    FAILS(MPI_ERR_TYPE, MPI_Send(&bytes, 1, inner, MPI_PROC_NULL, 0, MPI_COMM_WORLD));   // never committed
    OK(MPI_Type_free(&inner));
}

// Rank 0 sends a block of a matrix; the others receive it transposed, whole and in part.
static void messages(void) {
    enum { n = 96 };
    MPI_Datatype block, column, columns;
    int sizes[] = {n, n}, subsizes[] = {n / 2, n / 3}, starts[] = {5, 7};
    OK(MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &block));
    OK(MPI_Type_commit(&block));
    OK(MPI_Type_vector(n / 3, 1, n / 2, MPI_DOUBLE, &column));
    OK(MPI_Type_create_resized(column, 0, sizeof(double), &columns));
    OK(MPI_Type_commit(&columns));
    double* m = malloc(sizeof(double) * n * n);
    for (int round = 0; round < 3; round++) {
        if (rank == 0) {
            for (int i = 0; i < n * n; i++) m[i] = i + round;
            for (int r = 1; r < size; r++) OK(MPI_Send(m, 1, block, r, round, MPI_COMM_WORLD));
        } else {
            for (int i = 0; i < n * n; i++) m[i] = -1;
            MPI_Status s;
            OK(MPI_Recv(m, n / 2, columns, 0, round, MPI_COMM_WORLD, &s));
            int count;
            OK(MPI_Get_count(&s, columns, &count));
            CHECK(count == n / 2, "%d columns", count);
            for (int i = 0; i < n / 2; i++)
                for (int j = 0; j < n / 3; j++)
                    CHECK(m[j * (n / 2) + i] == (i + 5) * n + j + 7 + round, "at %d, %d: %f", i, j, m[j * (n / 2) + i]);
            for (int i = n / 2 * (n / 3); i < n * n; i++) CHECK(m[i] == -1, "written beyond the end at %d", i);
        }
    }
    free(m);
    OK(MPI_Type_free(&block));
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&columns));
}

struct record {
    double value;
    int tag[3];
    char flag;
};

static MPI_Datatype record_type(void) {
    int lengths[] = {1, 3, 1};
    MPI_Aint displs[] = {offsetof(struct record, value), offsetof(struct record, tag), offsetof(struct record, flag)};
    MPI_Datatype olds[] = {MPI_DOUBLE, MPI_INT, MPI_CHAR}, t, fitted;
    OK(MPI_Type_create_struct(3, lengths, displs, olds, &t));
    OK(MPI_Type_create_resized(t, 0, sizeof(struct record), &fitted));
    OK(MPI_Type_free(&t));
    OK(MPI_Type_commit(&fitted));
    return fitted;
}

static void elements(void) {
    MPI_Datatype t = record_type();
    MPI_Status s;
    int n;
    MPI_Count c;
    OK(MPI_Status_set_elements(&s, t, 7));   // one record (5 elements), a double and an int
    OK(MPI_Get_elements(&s, t, &n));
    CHECK(n == 7, "%d elements", n);
    OK(MPI_Get_elements_x(&s, t, &c));
    CHECK(c == 7, "%d elements", (int)c);
    OK(MPI_Get_count(&s, t, &n));
    CHECK(n == MPI_UNDEFINED, "%d records", n);
    OK(MPI_Get_elements(&s, MPI_CHAR, &n));
    CHECK(n == 21 + 12, "%d bytes", n);
    OK(MPI_Status_set_elements_c(&s, MPI_BYTE, (MPI_Count)1 << 40));
    OK(MPI_Get_elements_c(&s, MPI_BYTE, &c));
    CHECK(c == (MPI_Count)1 << 40, "%lld", (long long)c);
    OK(MPI_Get_elements(&s, MPI_BYTE, &n));
    CHECK(n == MPI_UNDEFINED, "%d does not fit an int", n);
    OK(MPI_Type_free(&t));
}

static void packing(void) {
    MPI_Datatype t = record_type();
    struct record in[4], out[4];
    char buffer[256];
    int position = 0, bytes, at = 0;
    memset(in, 0, sizeof in);
    memset(out, 0x77, sizeof out);
    for (int i = 0; i < 4; i++) in[i] = (struct record){i / 4.0, {i, -i, 300 * i}, (char)('a' + i)};
    OK(MPI_Pack_size(4, t, MPI_COMM_WORLD, &bytes));
    CHECK(bytes >= 4 * 21, "%d bytes", bytes);
    for (int i = 0; i < 4; i++) OK(MPI_Pack(&in[i], 1, t, buffer, sizeof buffer, &position, MPI_COMM_WORLD));
    CHECK(position == 4 * 21, "position %d", position);
    FAILS(MPI_ERR_TRUNCATE, MPI_Pack(in, 4, t, buffer, position + 3, &position, MPI_COMM_WORLD));
    CHECK(position == 4 * 21, "an error moved the position to %d", position);
    OK(MPI_Unpack(buffer, position, &at, out, 4, t, MPI_COMM_WORLD));
    for (int i = 0; i < 4; i++) {
        CHECK(out[i].value == in[i].value && out[i].tag[2] == in[i].tag[2] && out[i].flag == in[i].flag, "record %d", i);
        CHECK(((char*)&out[i])[21] == 0x77, "padding was written");
    }
    MPI_Aint room, where = 0;
    OK(MPI_Pack_external_size("external32", 2, t, &room));
    CHECK(room == 42, "%ld bytes in external32", (long)room);
    OK(MPI_Pack_external("external32", &in[1], 2, t, buffer, sizeof buffer, &where));
    const unsigned char want[] = {0x3f, 0xd0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 255, 255, 255, 255, 0, 0, 1, 0x2c, 'b'};
    CHECK(where == 42 && memcmp(buffer, want, sizeof want) == 0, "external32");
    where = 0;
    OK(MPI_Unpack_external("external32", buffer, 42, &where, out, 2, t));
    CHECK(out[1].value == in[2].value && out[1].tag[1] == -2, "back from external32");
    FAILS(MPI_ERR_ARG, MPI_Pack_external_size("native", 1, t, &room));
    OK(MPI_Type_free(&t));
}

static int calls;
static void subtract(void* in, void* inout, int* n, MPI_Datatype* t) {
    calls += *t == MPI_INT;
    for (int i = 0; i < *n; i++) ((int*)inout)[i] = ((int*)in)[i] - ((int*)inout)[i];
}
static void subtract_c(void* in, void* inout, MPI_Count* n, MPI_Datatype* t) {
    int m = (int)*n;
    subtract(in, inout, &m, t);
}

static void operations(void) {
    int a[] = {9, 8, 7}, b[] = {1, 2, 3}, commutes;
    MPI_Op op;
    OK(MPI_Op_create(subtract, 0, &op));
    OK(MPI_Reduce_local(a, b, 3, MPI_INT, op));
    CHECK(b[0] == 8 && b[1] == 6 && b[2] == 4 && calls == 1, "%d %d %d", b[0], b[1], b[2]);
    OK(MPI_Op_commutative(op, &commutes));
    CHECK(!commutes, "the operation does not commute");
    OK(MPI_Op_free(&op));
    CHECK(op == MPI_OP_NULL, "a freed handle is null");
    OK(MPI_Op_create_c(subtract_c, 1, &op));
    OK(MPI_Reduce_local_c(a, b, 3, MPI_INT, op));
    CHECK(b[0] == 1 && b[2] == 3, "%d %d", b[0], b[2]);
    OK(MPI_Op_free(&op));
    OK(MPI_Reduce_local(a, b, 3, MPI_INT, MPI_SUM));
    CHECK(b[0] == 10 && b[2] == 10, "%d %d", b[0], b[2]);
    OK(MPI_Op_commutative(MPI_SUM, &commutes));
    CHECK(commutes, "a sum commutes");
    op = MPI_SUM;
    FAILS(MPI_ERR_OP, MPI_Op_free(&op));
    FAILS(MPI_ERR_OP, MPI_Reduce_local(a, b, 3, MPI_WCHAR, MPI_SUM));
    FAILS(MPI_ERR_OP, MPI_Reduce_local(a, b, 3, MPI_FLOAT, MPI_BAND));
    MPI_Datatype pair;
    OK(MPI_Type_get_value_index(MPI_FLOAT, MPI_INT, &pair));
    CHECK(pair == MPI_FLOAT_INT, "the named pair");
    struct { float value; int index; } x = {2.5f, 7}, y = {2.5f, 9};
    OK(MPI_Reduce_local(&x, &y, 1, pair, MPI_MAXLOC));
    CHECK(y.index == 7, "index %d", y.index);
    OK(MPI_Type_get_value_index(MPI_FLOAT, MPI_FLOAT, &pair));
    CHECK(pair == MPI_DATATYPE_NULL, "a float is no index");
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    envelopes();
    messages();
    elements();
    packing();
    operations();
    return finish();
}
