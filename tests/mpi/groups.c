// Groups against plain arrays, and what a user expects of communicators made from them: order, names, hints, handlers,
// attributes; intercommunicators, compared, merged and split.
#include "check.h"

static uint64_t state = 4711;
enum { most = 64 };

typedef struct {
    int n, of[most];   // ranks in the world, in order
} List;

static int place(const List* l, int world) {
    for (int i = 0; i < l->n; i++)
        if (l->of[i] == world) return i;
    return MPI_UNDEFINED;
}

static MPI_Group world_group;

static void same(MPI_Group g, const List* l, const char* what) {
    int n, me, own[most], world[most];
    OK(MPI_Group_size(g, &n));
    OK(MPI_Group_rank(g, &me));
    CHECK(n == l->n, "%s: %d members, not %d", what, n, l->n);
    CHECK(me == place(l, rank), "%s: rank %d, not %d", what, me, place(l, rank));
    CHECK((g == MPI_GROUP_EMPTY) == (n == 0), "%s: an empty group is MPI_GROUP_EMPTY", what);
    for (int i = 0; i < n; i++) own[i] = i;
    OK(MPI_Group_translate_ranks(g, n, own, world_group, world));
    for (int i = 0; i < n; i++) CHECK(world[i] == l->of[i], "%s: member %d is %d, not %d", what, i, world[i], l->of[i]);
}

static MPI_Group some(List* l) {
    MPI_Group g;
    int order[most];
    for (int i = 0; i < size; i++) order[i] = i;
    for (int i = size - 1; i > 0; i--) {
        int j = (int)below(&state, (uint32_t)i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    l->n = (int)below(&state, (uint32_t)size + 1);
    memcpy(l->of, order, sizeof(int) * (size_t)l->n);
    OK(MPI_Group_incl(world_group, l->n, l->of, &g));
    return g;
}

static int expected_compare(const List* a, const List* b) {
    if (a->n != b->n) return MPI_UNEQUAL;
    int in_order = 1;
    for (int i = 0; i < a->n; i++) {
        if (place(b, a->of[i]) == MPI_UNDEFINED) return MPI_UNEQUAL;
        in_order &= a->of[i] == b->of[i];
    }
    return in_order ? MPI_IDENT : MPI_SIMILAR;
}

static void algebra(void) {
    List a, b, want;
    MPI_Group ga = some(&a), gb = some(&b), g;
    same(ga, &a, "incl");

    want = a;
    for (int i = 0; i < b.n; i++)
        if (place(&a, b.of[i]) == MPI_UNDEFINED) want.of[want.n++] = b.of[i];
    OK(MPI_Group_union(ga, gb, &g));
    same(g, &want, "union");
    OK(MPI_Group_free(&g));
    CHECK(g == MPI_GROUP_NULL, "MPI_Group_free leaves the handle");

    List common = {0}, rest = {0};
    for (int i = 0; i < a.n; i++) {
        List* to = place(&b, a.of[i]) == MPI_UNDEFINED ? &rest : &common;
        to->of[to->n++] = a.of[i];
    }
    OK(MPI_Group_intersection(ga, gb, &g));
    same(g, &common, "intersection");
    OK(MPI_Group_free(&g));
    OK(MPI_Group_difference(ga, gb, &g));
    same(g, &rest, "difference");
    OK(MPI_Group_free(&g));

    int result;
    OK(MPI_Group_compare(ga, gb, &result));
    CHECK(result == expected_compare(&a, &b), "compare: %d", result);
    OK(MPI_Group_compare(ga, ga, &result));
    CHECK(result == MPI_IDENT, "a group and itself: %d", result);

    // Every second member left out, or taken, told by a list and by a range.
    int odd[most], n = 0, range[1][3] = {{1, a.n - 1, 2}};
    List kept = {0}, left = {0};
    for (int i = 0; i < a.n; i++) {
        if (i % 2) odd[n++] = i, left.of[left.n++] = a.of[i];
        else kept.of[kept.n++] = a.of[i];
    }
    OK(MPI_Group_excl(ga, n, odd, &g));
    same(g, &kept, "excl");
    OK(MPI_Group_free(&g));
    OK(MPI_Group_range_excl(ga, a.n > 1, range, &g));
    same(g, &kept, "range_excl");
    OK(MPI_Group_free(&g));
    OK(MPI_Group_range_incl(ga, a.n > 1, range, &g));
    same(g, &left, "range_incl");
    OK(MPI_Group_free(&g));
    // And backwards.
    List back = {0};
    int down[1][3] = {{a.n - 1, 0, -1}};
    for (int i = a.n - 1; i >= 0; i--) back.of[back.n++] = a.of[i];
    OK(MPI_Group_range_incl(ga, a.n > 0, down, &g));
    same(g, &back, "range_incl, backwards");
    OK(MPI_Group_free(&g));

    int none = MPI_PROC_NULL, there;
    OK(MPI_Group_translate_ranks(ga, 1, &none, gb, &there));
    CHECK(there == MPI_PROC_NULL, "MPI_PROC_NULL becomes %d", there);
    OK(MPI_Group_free(&ga));
    OK(MPI_Group_free(&gb));
}

static void wrong_groups(void) {
    MPI_Group g = MPI_GROUP_NULL;
    int twice[2] = {0, 0}, far = size, range[1][3] = {{0, size - 1, 0}}, n;
    FAILS(MPI_ERR_RANK, MPI_Group_incl(world_group, 2, twice, &g));
    FAILS(MPI_ERR_RANK, MPI_Group_incl(world_group, 1, &far, &g));
    FAILS(MPI_ERR_RANK, MPI_Group_excl(world_group, 1, &far, &g));
    FAILS(MPI_ERR_ARG, MPI_Group_range_incl(world_group, 1, range, &g));
    FAILS(MPI_ERR_GROUP, MPI_Group_size(MPI_GROUP_NULL, &n));
    CHECK(g == MPI_GROUP_NULL, "a failed call wrote its output");
}

static void created(void) {
    List l;
    MPI_Group g = some(&l), of;
    MPI_Comm comm = MPI_COMM_WORLD, again = MPI_COMM_WORLD;
    OK(MPI_Comm_create(MPI_COMM_WORLD, g, &comm));
    CHECK((comm == MPI_COMM_NULL) == (place(&l, rank) == MPI_UNDEFINED), "who is in the communicator");
    if (comm != MPI_COMM_NULL) {
        OK(MPI_Comm_group(comm, &of));
        same(of, &l, "the communicator's group");
        OK(MPI_Group_free(&of));
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, g, 7, &again));
        int result;
        OK(MPI_Comm_compare(comm, again, &result));
        CHECK(result == MPI_CONGRUENT, "made in two ways: %d", result);
        OK(MPI_Comm_compare(comm, MPI_COMM_WORLD, &result));
        int want = l.n < size ? MPI_UNEQUAL : MPI_CONGRUENT;
        for (int i = 0; i < l.n && l.n == size; i++)
            if (l.of[i] != i) want = MPI_SIMILAR;
        CHECK(result == want, "beside the world: %d, not %d", result, want);
        OK(MPI_Comm_free(&again));
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Group_free(&g));
}

// Odd and even ranks, as an intercommunicator.
static void inter(void) {
    if (size < 2) return;
    MPI_Comm half, both, dup, merged, part;
    MPI_Group remote, local;
    int flag, n, result, evens = (size + 1) / 2, odds = size / 2, me;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 3, &both));
    OK(MPI_Comm_test_inter(both, &flag));
    CHECK(flag, "no intercommunicator");
    OK(MPI_Comm_size(both, &n));
    CHECK(n == (rank % 2 ? odds : evens), "%d on this side", n);
    OK(MPI_Comm_remote_size(both, &n));
    CHECK(n == (rank % 2 ? evens : odds), "%d on the other side", n);
    List others = {0}, own = {0};
    for (int i = 0; i < size; i++) {
        List* l = i % 2 == rank % 2 ? &own : &others;
        l->of[l->n++] = i;
    }
    OK(MPI_Comm_remote_group(both, &remote));
    OK(MPI_Comm_group(both, &local));
    same(remote, &others, "the other side");
    same(local, &own, "this side");
    OK(MPI_Group_free(&remote));
    OK(MPI_Group_free(&local));
    OK(MPI_Comm_dup(both, &dup));
    OK(MPI_Comm_compare(both, dup, &result));
    CHECK(result == MPI_CONGRUENT, "a duplicate: %d", result);
    OK(MPI_Comm_compare(both, MPI_COMM_WORLD, &result));
    CHECK(result == MPI_UNEQUAL, "beside an intracommunicator: %d", result);
    FAILS(MPI_ERR_COMM, MPI_Comm_remote_size(MPI_COMM_WORLD, &n));

    // The low side's ranks come first.
    for (int odd_high = 0; odd_high < 2; odd_high++) {
        OK(MPI_Intercomm_merge(dup, rank % 2 == odd_high, &merged));
        OK(MPI_Comm_rank(merged, &me));
        OK(MPI_Comm_size(merged, &n));
        int low = rank % 2 != odd_high;
        CHECK(n == size && me == rank / 2 + (low ? 0 : odd_high ? evens : odds), "merged: %d of %d", me, n);
        OK(MPI_Comm_free(&merged));
    }
    // Split: colours meet across the sides; one that has nobody over there is no communicator.
    int color = rank / 2 % 2;
    OK(MPI_Comm_split(both, color, -rank, &part));
    int there = 0, here = 0;
    for (int i = 0; i < size; i++)
        if (i / 2 % 2 == color) there += i % 2 != rank % 2, here += i % 2 == rank % 2;
    CHECK((part == MPI_COMM_NULL) == (there == 0), "colour %d: %d there", color, there);
    if (part != MPI_COMM_NULL) {
        OK(MPI_Comm_remote_size(part, &n));
        CHECK(n == there, "colour %d: %d there, not %d", color, n, there);
        OK(MPI_Comm_size(part, &n));
        CHECK(n == here, "colour %d: %d here, not %d", color, n, here);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&both));
    OK(MPI_Comm_free(&half));
}

static void hint(MPI_Comm comm, const char* key, const char* want) {
    MPI_Info info;
    char value[64] = "";
    int bytes = sizeof value, flag;
    OK(MPI_Comm_get_info(comm, &info));
    OK(MPI_Info_get_string(info, key, &bytes, value, &flag));
    CHECK(flag ? want && strcmp(value, want) == 0 : !want, "%s is %s, not %s", key, flag ? value : "not there", want ? want : "absent");
    OK(MPI_Info_free(&info));
}

// Hints come from the info alone, and only those that are known stay.
static void hints(void) {
    static const char tag[] = "mpi_assert_no_any_tag", source[] = "mpi_assert_no_any_source";
    MPI_Info info;
    MPI_Comm with, without, later, set;
    MPI_Request r;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, tag, "true"));
    OK(MPI_Info_set(info, "colour_of_the_case", "grey"));
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &with));
    hint(with, tag, "true");
    hint(with, source, "false");
    hint(with, "colour_of_the_case", NULL);
    OK(MPI_Comm_dup(with, &without));
    hint(without, tag, "false");
    OK(MPI_Comm_idup_with_info(without, info, &later, &r));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    hint(later, tag, "true");
    OK(MPI_Info_set(info, tag, "false"));
    OK(MPI_Info_set(info, source, "true"));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &set));
    OK(MPI_Comm_set_info(set, info));
    hint(set, source, "true");
    OK(MPI_Info_delete(info, source));
    OK(MPI_Info_set(info, tag, "true"));
    OK(MPI_Comm_set_info(set, info));   // what it does not name stays
    hint(set, source, "true");
    hint(set, tag, "true");
    OK(MPI_Info_free(&info));
    int one = 1, sum = 0;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, later));
    CHECK(sum == size, "%d", sum);
    OK(MPI_Comm_free(&with));
    OK(MPI_Comm_free(&without));
    OK(MPI_Comm_free(&later));
    OK(MPI_Comm_free(&set));
}

static void names(void) {
    char name[MPI_MAX_OBJECT_NAME], all[2 * MPI_MAX_OBJECT_NAME];
    int length;
    OK(MPI_Comm_get_name(MPI_COMM_NULL, name, &length));
    CHECK(strcmp(name, "MPI_COMM_NULL") == 0, "%s", name);
    MPI_Comm dup;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    memset(all, 'x', sizeof all);
    all[sizeof all - 1] = 0;
    OK(MPI_Comm_set_name(dup, all));   // too long: cut
    OK(MPI_Comm_get_name(dup, name, &length));
    CHECK(length == MPI_MAX_OBJECT_NAME - 1 && strspn(name, "x") == (size_t)length, "%d", length);
    OK(MPI_Comm_set_name(dup, ""));
    OK(MPI_Comm_get_name(dup, name, &length));
    CHECK(length == 0 && !name[0], "%s", name);
    OK(MPI_Comm_free(&dup));
}

static int copies, deletions;
static int copy(MPI_Comm c, int key, void* extra, void* value, void* out, int* flag) {
    (void)c, (void)key, (void)extra;
    copies++;
    *(void**)out = value;
    *flag = 1;
    return MPI_SUCCESS;
}
static int remove_it(MPI_Comm c, int key, void* value, void* extra) {
    (void)c, (void)key, (void)value, (void)extra;
    deletions++;
    return MPI_SUCCESS;
}

// Only a duplicate inherits attributes; every new communicator inherits the handler.
static void inheritance(void) {
    int key, flag;
    void* value;
    MPI_Comm from, to[4];
    OK(MPI_Comm_create_keyval(copy, remove_it, &key, NULL));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &from));
    OK(MPI_Comm_set_attr(from, key, &copies));
    OK(MPI_Comm_set_errhandler(from, MPI_ERRORS_RETURN));
    OK(MPI_Comm_dup(from, &to[0]));
    OK(MPI_Comm_split(from, 0, 0, &to[1]));
    OK(MPI_Comm_create(from, world_group, &to[2]));
    OK(MPI_Comm_create_group(from, world_group, 1, &to[3]));
    CHECK(copies == 1, "%d copies", copies);
    for (int i = 0; i < 4; i++) {
        OK(MPI_Comm_get_attr(to[i], key, &value, &flag));
        CHECK(flag == (i == 0) && (!flag || value == &copies), "attribute of communicator %d", i);
        FAILS(MPI_ERR_RANK, MPI_Send(NULL, 0, MPI_BYTE, size, 0, to[i]));
        OK(MPI_Comm_free(&to[i]));
    }
    CHECK(deletions == 1, "%d deletions", deletions);
    OK(MPI_Comm_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID, "MPI_Comm_free_keyval leaves the key");
    OK(MPI_Comm_free(&from));
    CHECK(deletions == 2, "%d deletions", deletions);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world_group));
    for (int i = 0; i < 200; i++) algebra();
    wrong_groups();
    for (int i = 0; i < 20; i++) created();
    inter();
    hints();
    names();
    inheritance();
    OK(MPI_Group_free(&world_group));
    return finish();
}
