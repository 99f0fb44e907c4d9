"""An error that ends the job says which object's error handler decided so, and the call that makes it return instead. That
call is tried out: with it the same error returns."""
import common
from common import Programs

PROGRAM = r'''
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* Arguments: the case, and anything more to follow the hint first. */
int main(int argc, char **argv) {
    const char *what = argv[1];
    int one = 1, error = MPI_SUCCESS, follow = argc > 2;
    MPI_Comm dup;
    MPI_Session session;
    MPI_Group group;
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    if (!strcmp(what, "world")) {
        if (follow) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        error = MPI_Send(&one, -1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    } else if (!strcmp(what, "self")) {
        if (follow) MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        error = MPI_Type_contiguous(-1, MPI_INT, &(MPI_Datatype){0});
    } else if (!strcmp(what, "no_comm")) {   /* a bad communicator has no handler: that of MPI_COMM_SELF */
        if (follow) MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        error = MPI_Barrier(MPI_COMM_NULL);
    } else if (!strcmp(what, "named")) {
        MPI_Comm_set_name(dup, "halo");
        if (follow) MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
        error = MPI_Bcast(&one, 1, MPI_INT, 7, dup);
    } else if (!strcmp(what, "unnamed")) {
        if (follow) MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
        error = MPI_Bcast(&one, 1, MPI_INT, 7, dup);
    } else if (!strcmp(what, "request")) {
        MPI_Request request;
        char data[8] = "";
        if (follow) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Irecv(data, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Send(data, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (!strcmp(what, "session")) {
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
        if (follow) MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN);
        error = MPI_Group_from_session_pset(session, "mpi://nothing", &group);
        MPI_Session_finalize(&session);
    } else if (!strcmp(what, "argument")) {
        info = (MPI_Info)0x0ff0;   /* no handle */
        error = MPI_Session_init(info, follow ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL, &session);
    } else if (!strcmp(what, "file")) {
        MPI_File file;
        if (follow) MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
        else MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
        error = MPI_File_open(MPI_COMM_NULL, "x", 0, MPI_INFO_NULL, &file);
    }
    if (error == MPI_SUCCESS) return 99;
    puts("returned");
    return 0;
}
'''
HINTS = {
    'world': 'MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) makes',
    'self': 'MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) makes',
    'no_comm': 'MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) makes',
    'named': 'on the communicator "halo" makes',
    'unnamed': 'on this communicator, which has no name, makes',
    'request': 'MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) makes',
    'session': 'MPI_Session_set_errhandler with MPI_ERRORS_RETURN on this session makes',
    'argument': 'MPI_ERRORS_RETURN as the argument errhandler makes',
    'file': 'MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN) makes',
}


class Hints(Programs):
    def test_each_names_its_object_and_helps(self):
        program = self.link(self.write('hints.c', PROGRAM), '-std=c11', '-w')
        for case, hint in HINTS.items():
            with self.subTest(case):
                done = common.run([program, case])
                self.assertNotIn(done.returncode, (0, 99), done.stdout)
                self.assertIn(hint, done.stderr)
                self.assertEqual(self.must([program, case, 'follow']).stdout, 'returned\n')


if __name__ == '__main__':
    common.main()
