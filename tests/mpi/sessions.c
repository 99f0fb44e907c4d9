// Sessions: before, beside and after each other and the World Model; process sets; communicators without a parent, also of
// overlapping groups under several tags, and intercommunicators. Argument: "world" to use the World Model as well.
#include "check.h"

static int errors_seen;
static void count_errors(MPI_Session* s, int* code, ...) {
    (void)s;
    (void)code;
    errors_seen++;
}

static void look_at_sets(MPI_Session s) {
    int n = 0, length = 0, world = 0;
    OK(MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n));
    CHECK(n >= 2, "%d process sets", n);
    for (int i = 0; i < n; i++) {
        char name[MPI_MAX_PSET_NAME_LEN], small[4] = "###";
        length = 0;
        OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &length, NULL));
        int full = length;
        OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &length, name));
        CHECK((int)strlen(name) + 1 == full && length == full, "length %d of \"%s\"", full, name);
        length = 4;
        OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &length, small));
        CHECK(small[3] == 0 && length == full, "a name cut short is not terminated");
        world += strcmp(name, "mpi://WORLD") == 0;
    }
    CHECK(world == 1, "mpi://WORLD is not there");
    length = 10;
    FAILS(MPI_ERR_ARG, MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 0, &length, NULL));
    static const char* const near[] = {"MPI://WORL", "mpi://WORLDS", "mpi:/WORLD", "WORLD", "", "mpi://"};
    for (int i = 0; i < 6; i++) {
        MPI_Group g;
        FAILS(MPI_ERR_ARG, MPI_Group_from_session_pset(s, near[i], &g));
    }
    MPI_Info info;
    char value[32];
    int flag = 0;
    length = sizeof value;
    OK(MPI_Session_get_pset_info(s, "mPi://Self", &info));   // these names have no case
    OK(MPI_Info_get_string(info, "mpi_size", &length, value, &flag));
    CHECK(flag && strcmp(value, "1") == 0, "mpi://SELF has not the size 1");
    MPI_Info_free(&info);
    OK(MPI_Session_get_info(s, &info));
    length = sizeof value;
    OK(MPI_Info_get_string(info, "thread_level", &length, value, &flag));
    CHECK(flag && strncmp(value, "MPI_THREAD_", 11) == 0, "no thread level");
    MPI_Info_free(&info);
}

static void sum_over(MPI_Comm comm, int want) {
    int one = 1, sum = -1;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == want, "%d members, not %d", sum, want);
}

static void one_session(int round) {
    MPI_Session s;
    MPI_Errhandler handler;
    MPI_Group world, half, empty;
    MPI_Comm all, part, inter, none;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
    look_at_sets(s);
    OK(MPI_Group_from_session_pset(s, round % 2 ? "mpi://WORLD" : "MPI://world", &world));
    MPI_Group_size(world, &size);
    MPI_Group_rank(world, &rank);

    OK(MPI_Comm_create_from_group(world, "all of us", MPI_INFO_NULL, MPI_ERRORS_RETURN, &all));
    sum_over(all, size);
    // Every second process, under the same tag on both halves, while another creation has its own.
    int mine[64], n = 0;
    for (int i = rank % 2; i < size; i += 2) mine[n++] = i;
    OK(MPI_Group_incl(world, n, mine, &half));
    OK(MPI_Comm_create_from_group(half, "half", MPI_INFO_NULL, MPI_ERRORS_RETURN, &part));
    sum_over(part, n);
    if (size > 1) {
        MPI_Group other;
        MPI_Group_difference(world, half, &other);
        OK(MPI_Intercomm_create_from_groups(half, 0, other, 0, "between", MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
        sum_over(inter, size - n);
        MPI_Group_free(&other);
        MPI_Comm_free(&inter);
    }
    MPI_Group_difference(half, half, &empty);
    OK(MPI_Comm_create_from_group(empty, "nobody", MPI_INFO_NULL, MPI_ERRORS_RETURN, &none));
    CHECK(none == MPI_COMM_NULL, "a communicator of nobody");

    // Errors go to the session's handler.
    MPI_Group bad;
    FAILS(MPI_ERR_ARG, MPI_Group_from_session_pset(s, "mpi://no such set", &bad));
    OK(MPI_Session_create_errhandler(count_errors, &handler));
    OK(MPI_Session_set_errhandler(s, handler));
    errors_seen = 0;
    (void)MPI_Group_from_session_pset(s, "mpi://no such set", &bad);
    OK(MPI_Session_call_errhandler(s, MPI_ERR_OTHER));
    CHECK(errors_seen == 2, "the handler was called %d times in round %d", errors_seen, round);
    MPI_Errhandler_free(&handler);

    MPI_Comm_free(&part);
    MPI_Comm_free(&all);
    MPI_Group_free(&half);
    MPI_Group_free(&world);
    OK(MPI_Session_finalize(&s));
    CHECK(s == MPI_SESSION_NULL, "the handle is still there");
}

int main(int argc, char** argv) {
    int with_world = argc > 1 && strcmp(argv[1], "world") == 0, flag = 1;
    one_session(0);
    OK(MPI_Initialized(&flag));
    CHECK(!flag, "a session is not MPI_Init");
    if (with_world) {
        start(&argc, &argv);
        one_session(1);
        sum_over(MPI_COMM_WORLD, size);
        MPI_Session over;
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &over));
        MPI_Finalize();
        OK(MPI_Finalized(&flag));
        CHECK(flag, "MPI_Finalize has not finalised");
        one_session(2);
        OK(MPI_Session_finalize(&over));
    }
    one_session(3);
    OK(MPI_Finalized(&flag));
    CHECK(flag == with_world, "a session's end is not MPI_Finalize");
    return 0;
}
