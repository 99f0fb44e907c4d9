// What processes share in the machine, seen through MPI_Comm_split_type and MPI_Get_hw_resource_info. Started on a machine
// that mpiexec is told of (HWLOC_SYNTHETIC), the argument says how many ranks share each thing, from the top:
//     hardware TYPE=RANKS ...      e.g. Package=4 L3Cache=2 Core=1, or Package=0 where ranks are not confined to one
#include "check.h"

static MPI_Comm split(MPI_Comm comm, int type, const char* key, const char* value, char* found) {
    MPI_Info info;
    MPI_Comm part = MPI_COMM_WORLD;
    OK(MPI_Info_create(&info));
    if (key) OK(MPI_Info_set(info, key, value));
    OK(MPI_Comm_split_type(comm, type, 0, info, &part));
    if (found) {
        int bytes = 64, flag = 0;
        OK(MPI_Info_get_string(info, "mpi_hw_resource_type", &bytes, found, &flag));
        if (!flag) strcpy(found, "none");
    }
    MPI_Info_free(&info);
    return part;
}

// Are these the ranks of `comm` in blocks of `each`, in order? Frees `part`.
static void check_block(MPI_Comm comm, MPI_Comm part, int each, const char* what) {
    CHECK((part == MPI_COMM_NULL) == (each == 0), "%s: %d ranks expected", what, each);
    if (part == MPI_COMM_NULL) return;
    MPI_Group of_part, of_comm;
    int n, me, here[64], there[64];
    OK(MPI_Comm_size(part, &n));
    OK(MPI_Comm_rank(comm, &me));
    CHECK(n == each, "%s: %d ranks, not %d", what, n, each);
    for (int i = 0; i < n; i++) here[i] = i;
    OK(MPI_Comm_group(part, &of_part));
    OK(MPI_Comm_group(comm, &of_comm));
    OK(MPI_Group_translate_ranks(of_part, n, here, of_comm, there));
    for (int i = 0; i < n; i++) CHECK(there[i] == me / each * each + i, "%s: member %d is %d", what, i, there[i]);
    MPI_Group_free(&of_part);
    MPI_Group_free(&of_comm);
    MPI_Comm_free(&part);
}

static const char* short_name(const char* uri) {
    CHECK(strncmp(uri, "hwloc://", 8) == 0, "%s is no URI of hwloc's", uri);
    return uri + 8;
}

static int expected(int argc, char** argv, const char* name) {
    size_t n = strlen(name);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, n) == 0 && argv[i][n] == '=') return atoi(argv[i] + n + 1);
    return -1;
}

// The info names exactly the kinds given, says of each whether the rank is confined to one, and each can be split by.
static void listed(int argc, char** argv) {
    MPI_Info info;
    int keys, machine = 0;
    OK(MPI_Get_hw_resource_info(&info));
    OK(MPI_Info_get_nkeys(info, &keys));
    for (int i = 0; i < keys; i++) {
        char uri[MPI_MAX_INFO_KEY + 1], value[16];
        int bytes = sizeof value, flag;
        OK(MPI_Info_get_nthkey(info, i, uri));
        OK(MPI_Info_get_string(info, uri, &bytes, value, &flag));
        const char* name = short_name(uri);
        int each = strcmp(name, "Machine") == 0 ? size : expected(argc, argv, name);
        machine |= strcmp(name, "Machine") == 0;
        if (argc > 1) CHECK(strcmp(value, each > 0 ? "true" : "false") == 0, "%s is %s", name, value);
        else each = -1;
        MPI_Comm part = split(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", uri, NULL);
        MPI_Comm same = split(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_hw_resource_type", uri, NULL);
        CHECK((part != MPI_COMM_NULL) == (strcmp(value, "true") == 0), "%s is %s", name, value);
        if (part != MPI_COMM_NULL) {
            int result;
            OK(MPI_Comm_compare(part, same, &result));
            CHECK(result == MPI_CONGRUENT, "%s: guided by hardware and by resource", name);
            MPI_Comm_free(&same);
        }
        if (each >= 0) check_block(MPI_COMM_WORLD, part, each, name);
        else if (part != MPI_COMM_NULL) MPI_Comm_free(&part);
    }
    if (argc > 1) CHECK(keys == argc, "%d kinds, not %d", keys, argc);   // the machine itself is not in the arguments
    CHECK(machine, "the machine is not listed");
    MPI_Info_free(&info);
}

static void in_one_node(void) {
    MPI_Comm part;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part));
    check_block(MPI_COMM_WORLD, part, size, "MPI_COMM_TYPE_SHARED");
    part = split(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "mpi_shared_memory", NULL);
    check_block(MPI_COMM_WORLD, part, size, "mpi_shared_memory");
}

static void nothing_to_go_by(void) {
    static const int types[] = {MPI_COMM_TYPE_HW_GUIDED, MPI_COMM_TYPE_RESOURCE_GUIDED};
    for (int i = 0; i < 2; i++) {
        MPI_Comm part = MPI_COMM_WORLD;
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, types[i], 0, MPI_INFO_NULL, &part));
        check_block(MPI_COMM_WORLD, part, 0, "MPI_INFO_NULL");
        check_block(MPI_COMM_WORLD, split(MPI_COMM_WORLD, types[i], NULL, NULL, NULL), 0, "an empty info");
        check_block(MPI_COMM_WORLD, split(MPI_COMM_WORLD, types[i], "mpi_hw_resource_type", "hwloc://Moon", NULL), 0, "a moon");
    }
    MPI_Comm part = split(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, "mpi_pset_name", "mpi://WORLD", NULL);
    check_block(MPI_COMM_WORLD, part, 0, "a process set is no hardware");
}

static void process_sets(void) {
    MPI_Comm part = split(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://WORLD", NULL);
    check_block(MPI_COMM_WORLD, part, size, "mpi://WORLD");
    part = split(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://SELF", NULL);
    check_block(MPI_COMM_WORLD, part, 1, "mpi://SELF");
    part = split(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "moon://", NULL);
    check_block(MPI_COMM_WORLD, part, 0, "moon://");

    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_pset_name", "mpi://WORLD"));
    OK(MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory"));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    FAILS(MPI_ERR_INFO, MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &part));
    FAILS(MPI_ERR_ARG, MPI_Comm_split_type(MPI_COMM_WORLD, 12345, 0, info, &part));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Info_free(&info);
}

// Down through the levels that really part the ranks, each told in the info, until nothing is left to part.
static void descend(int argc, char** argv) {
    MPI_Comm at = MPI_COMM_WORLD;
    int here = size;
    for (int i = 1; i < argc; i++) {
        char name[64], found[64];
        int each = 0;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(argv[i], "="), argv[i]);
        each = expected(argc, argv, name);
        if (each == 0 || each == here) continue;
        MPI_Comm part = split(at, MPI_COMM_TYPE_HW_UNGUIDED, NULL, NULL, found);
        CHECK(strcmp(short_name(found), name) == 0, "parted by %s, not %s", found, name);
        if (at != MPI_COMM_WORLD) MPI_Comm_free(&at);
        OK(MPI_Comm_dup(part, &at));
        CHECK(here % each == 0, "the arguments");
        here = each;
        int n;
        OK(MPI_Comm_size(part, &n));
        CHECK(n == each, "%s: %d ranks, not %d", name, n, each);
        MPI_Comm_free(&part);
    }
    char found[64];
    CHECK(split(at, MPI_COMM_TYPE_HW_UNGUIDED, NULL, NULL, found) == MPI_COMM_NULL, "below %d ranks", here);
    CHECK(strcmp(found, "none") == 0, "%s parts nothing", found);
    if (at != MPI_COMM_WORLD) MPI_Comm_free(&at);
}

// The same on the machine as it is, whatever that is: every step parts what is left.
static void descend_somewhere(void) {
    MPI_Comm at;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &at));
    for (int here = size, n; at != MPI_COMM_NULL; here = n) {
        char found[64];
        MPI_Comm part = split(at, MPI_COMM_TYPE_HW_UNGUIDED, NULL, NULL, found);
        CHECK((part == MPI_COMM_NULL) == (strcmp(found, "none") == 0), "parted by %s", found);
        MPI_Comm_free(&at);
        at = part;
        if (part == MPI_COMM_NULL) break;
        OK(MPI_Comm_size(part, &n));
        CHECK(n < here, "%d of %d ranks", n, here);
    }
}

// Whoever says MPI_UNDEFINED takes part in the call, whatever the others say, and in nothing else.
static void some_stay_out(void) {
    static const int types[] = {MPI_COMM_TYPE_SHARED, MPI_COMM_TYPE_HW_UNGUIDED, MPI_COMM_TYPE_HW_GUIDED};
    for (int i = 0; i < 3; i++) {
        MPI_Comm part = MPI_COMM_WORLD;
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, rank == size - 1 ? MPI_UNDEFINED : types[i], -rank, MPI_INFO_NULL, &part));
        if (rank == size - 1 || i == 2) CHECK(part == MPI_COMM_NULL, "the last rank is out");
        if (part == MPI_COMM_NULL) continue;
        int n, me;
        OK(MPI_Comm_size(part, &n));
        OK(MPI_Comm_rank(part, &me));
        CHECK(n < size, "%d ranks", n);
        if (i == 0) CHECK(n == size - 1 && me == size - 2 - rank, "rank %d of %d by falling keys", me, n);
        MPI_Comm_free(&part);
    }
}

// Both sides of an intercommunicator are parted alike.
static void intercommunicator(int argc, char** argv) {
    if (size < 2) return;
    MPI_Comm half, inter, part;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &inter));
    OK(MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part));
    int far;
    OK(MPI_Comm_remote_size(part, &far));
    CHECK(far == (size + rank % 2) / 2, "%d on the other side", far);
    MPI_Comm_free(&part);
    OK(MPI_Comm_split_type(inter, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &part));
    int each = expected(argc, argv, "Package");
    if (each > 1 && each < size) {
        OK(MPI_Comm_remote_size(part, &far));
        CHECK(far == each / 2, "%d on the other side of one package", far);
    }
    if (part != MPI_COMM_NULL) MPI_Comm_free(&part);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    listed(argc, argv);
    in_one_node();
    nothing_to_go_by();
    process_sets();
    if (argc > 1) descend(argc, argv);
    else descend_somewhere();
    some_stay_out();
    intercommunicator(argc, argv);
    return finish();
}
