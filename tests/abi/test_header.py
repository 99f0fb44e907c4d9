"""What mpi.h offers beside the ABI's functions: Fortran's handles, and on demand the names that MPI-3.0 removed. Both are
inline, and must compile wherever a program may still be written: C89 and C++98 included."""
import common
from common import ABI, Programs

STANDARDS = (('c', '-std=c89'), ('c', '-std=c99'), ('c', '-std=c17'), ('cpp', '-std=c++98'), ('cpp', '-std=c++20'))
STRICT = ('-Wall', '-Wextra', '-Werror', '-pedantic')
HANDLES = [f['name'].removesuffix('_toint') for f in ABI['functions'] if f['name'].endswith('_toint')]

FORTRAN = r'''
#include <mpi.h>
#include <stdio.h>
#define CHECK(x) do { if (!(x)) { printf("line %d: %s\n", __LINE__, #x); return 1; } } while (0)
int main(void) {
    MPI_Fint f[MPI_F_STATUS_SIZE], g[MPI_F_STATUS_SIZE];
    MPI_Status status, back;
    MPI_F08_status f08;
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Info info;
    MPI_Request request;
    int i, n = 7, bytes, count = -1, cancelled = -1;
    MPI_Init(NULL, NULL);
    CHECK(MPI_Comm_c2f(MPI_COMM_WORLD) == 257 && MPI_Comm_f2c(257) == MPI_COMM_WORLD);
    CHECK(MPI_Type_f2c(MPI_Type_c2f(MPI_INT)) == MPI_INT && MPI_Op_f2c(MPI_Op_c2f(MPI_SUM)) == MPI_SUM);
    CHECK(MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_NULL)) == MPI_COMM_NULL);
    CHECK(MPI_Group_f2c(MPI_Group_c2f(MPI_GROUP_EMPTY)) == MPI_GROUP_EMPTY);
    CHECK(MPI_Errhandler_f2c(MPI_Errhandler_c2f(MPI_ERRORS_RETURN)) == MPI_ERRORS_RETURN);
    CHECK(MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)) == MPI_WIN_NULL && MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
    CHECK(MPI_Session_f2c(MPI_Session_c2f(MPI_SESSION_NULL)) == MPI_SESSION_NULL);
    CHECK(MPI_Message_f2c(MPI_Message_c2f(MPI_MESSAGE_NO_PROC)) == MPI_MESSAGE_NO_PROC);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Info_create(&info);
    MPI_Isend(&n, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request);
    CHECK(MPI_Comm_f2c(MPI_Comm_c2f(comm)) == comm && MPI_Comm_c2f(comm) != MPI_Comm_c2f(MPI_COMM_SELF));
    CHECK(MPI_Type_f2c(MPI_Type_c2f(type)) == type && MPI_Info_f2c(MPI_Info_c2f(info)) == info);
    CHECK(MPI_Request_f2c(MPI_Request_c2f(request)) == request);
    MPI_Recv(&n, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    MPI_Type_free(&type);
    MPI_Info_free(&info);

    /* A status keeps its count on the way through Fortran. */
    bytes = (int)sizeof status;
    CHECK(bytes == MPI_F_STATUS_SIZE * (int)sizeof(MPI_Fint));
    status.MPI_ERROR = 99;
    CHECK(MPI_Status_c2f(&status, f) == MPI_SUCCESS);
    CHECK(f[MPI_F_SOURCE] == 0 && f[MPI_F_TAG] == 5 && f[MPI_F_ERROR] == 99);
    CHECK(MPI_Status_f2f08(f, &f08) == MPI_SUCCESS && f08.MPI_TAG == 5);
    CHECK(MPI_Status_f082f(&f08, g) == MPI_SUCCESS);
    for (i = 0; i < MPI_F_STATUS_SIZE; i++) CHECK(f[i] == g[i]);
    CHECK(MPI_Status_f2c(g, &back) == MPI_SUCCESS && back.MPI_ERROR == 99);
    MPI_Get_count(&back, MPI_INT, &count);
    CHECK(count == 1);
    CHECK(MPI_Status_c2f08(&back, &f08) == MPI_SUCCESS && MPI_Status_f082c(&f08, &status) == MPI_SUCCESS);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled == 0 && status.MPI_TAG == 5);
    CHECK(MPI_Status_f2c(MPI_F_STATUS_IGNORE, &back) != MPI_SUCCESS && MPI_Status_c2f(MPI_STATUS_IGNORE, f) != MPI_SUCCESS);
    return MPI_Finalize();
}
'''

OLD = r'''
#define WEFT_MPI1_NAMES
#include <mpi.h>
#include <stdio.h>
#define CHECK(x) do { if (!(x)) { printf("line %d: %s\n", __LINE__, #x); return 1; } } while (0)
static int errors;
static void count_error(MPI_Comm *comm, int *code, ...) { errors += *comm != MPI_COMM_NULL && *code != 0; }
static int named(int combiner) {
    switch (combiner) {
    case MPI_COMBINER_HVECTOR: case MPI_COMBINER_HVECTOR_INTEGER:
    case MPI_COMBINER_HINDEXED: case MPI_COMBINER_HINDEXED_INTEGER:
    case MPI_COMBINER_STRUCT: case MPI_COMBINER_STRUCT_INTEGER: return 0;
    default: return 1;
    }
}
struct particle { char kind; double at[3]; int id; };
int main(void) {
    struct particle p[2], q[2];
    MPI_Handler_function *handler = count_error;
    MPI_Errhandler mine, got;
    MPI_Datatype type, part, types[5];
    MPI_Aint at[5], start, lb = -1, ub = -1, extent = -1;
    MPI_Status status;
    int lengths[5], i, integers, addresses, datatypes, combiner, count;
    MPI_Init(NULL, NULL);
    MPI_Address(p, &start);
    MPI_Address(&p[0].kind, &at[0]);
    MPI_Address(p[0].at, &at[1]);
    MPI_Address(&p[0].id, &at[2]);
    for (i = 0; i < 3; i++) at[i] -= start;
    at[3] = sizeof p[0];
    at[4] = 0;
    lengths[0] = lengths[2] = lengths[3] = lengths[4] = 1;
    lengths[1] = 3;
    types[0] = MPI_CHAR;
    types[1] = MPI_DOUBLE;
    types[2] = MPI_INT;
    types[3] = MPI_UB;
    types[4] = MPI_LB;
    CHECK(MPI_Type_struct(5, lengths, at, types, &type) == MPI_SUCCESS);
    MPI_Type_commit(&type);
    MPI_Type_extent(type, &extent);
    MPI_Type_lb(type, &lb);
    MPI_Type_ub(type, &ub);
    CHECK(extent == sizeof p[0] && lb == 0 && ub == sizeof p[0]);
    for (i = 0; i < 2; i++) {
        p[i].kind = (char)('a' + i);
        p[i].at[0] = i; p[i].at[1] = i + 0.25; p[i].at[2] = i + 0.5;
        p[i].id = 10 + i;
    }
    MPI_Sendrecv(p, 2, type, 0, 0, q, 2, type, 0, 0, MPI_COMM_SELF, &status);
    MPI_Get_count(&status, type, &count);
    CHECK(count == 2 && q[1].kind == 'b' && q[1].at[2] == 1.5 && q[1].id == 11 && q[0].at[1] == 0.25);
    MPI_Type_free(&type);

    /* Bounds below and above the members; the outermost of several count; without any it is a plain struct. */
    at[0] = 8; at[1] = -16; at[2] = 40; at[3] = 32;
    lengths[1] = 1;
    types[0] = MPI_INT; types[1] = MPI_LB; types[2] = MPI_UB; types[3] = MPI_UB;
    CHECK(MPI_Type_struct(4, lengths, at, types, &type) == MPI_SUCCESS);
    MPI_Type_lb(type, &lb);
    MPI_Type_extent(type, &extent);
    CHECK(lb == -16 && extent == 56);
    MPI_Type_free(&type);
    CHECK(MPI_Type_struct(2, lengths, at, types, &type) == MPI_SUCCESS);
    MPI_Type_lb(type, &lb);
    MPI_Type_ub(type, &ub);
    CHECK(lb == -16 && ub == 12);
    MPI_Type_free(&type);
    CHECK(MPI_Type_struct(1, lengths, at, types, &type) == MPI_SUCCESS);
    MPI_Type_get_envelope(type, &integers, &addresses, &datatypes, &combiner);
    CHECK(combiner == MPI_COMBINER_STRUCT && !named(combiner));
    MPI_Type_free(&type);

    /* The old constructors. */
    MPI_Type_hvector(2, 1, 24, MPI_INT, &part);
    lengths[0] = 1; at[0] = 4;
    MPI_Type_hindexed(1, lengths, at, part, &type);
    MPI_Type_get_extent(type, &lb, &extent);
    CHECK(lb == 4 && extent == 28);
    MPI_Type_free(&part);
    MPI_Type_free(&type);

    /* Error handlers under their old names. */
    MPI_Errhandler_create(handler, &mine);
    MPI_Errhandler_set(MPI_COMM_WORLD, mine);
    MPI_Errhandler_get(MPI_COMM_WORLD, &got);
    CHECK(got == mine);
    CHECK(MPI_Send(&i, -1, MPI_INT, 0, 0, MPI_COMM_WORLD) != MPI_SUCCESS && errors == 1);
    MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    types[0] = MPI_LB;
    MPI_Errhandler_set(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Type_contiguous(1, MPI_UB, &type) == MPI_ERR_TYPE);
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&mine);
    return MPI_Finalize();
}
'''


class Extras(Programs):
    def each(self, name, text):
        for suffix, standard in STANDARDS:
            with self.subTest(standard):
                self.must([self.link(self.write(f'{name}.{suffix}', text), standard, *STRICT)])

    def test_handles_and_statuses_of_fortran(self):
        self.each('fortran', FORTRAN)

    def test_every_handle_has_its_forms(self):
        lines = ['#include <mpi.h>', 'int main(void) {']
        for name in HANDLES:
            handle = name.replace('MPI_Type', 'MPI_Datatype')
            lines += [f'    {{ {handle} (*f)(MPI_Fint) = {name}_f2c; (void)f; }}',
                      f'    {{ MPI_Fint (*f)({handle}) = {name}_c2f; (void)f; }}']
        self.assertEqual(len(HANDLES), 11)
        self.each('handles', '\n'.join(lines + ['    return 0;', '}', '']))

    def test_a_fortran_layer_may_bring_its_own(self):
        text = '#include <mpi.h>\ntypedef long MPI_Fint;\nMPI_Comm MPI_Comm_f2c(MPI_Fint comm);\nint main(void) { return 0; }\n'
        self.compile(self.write('own.c', text), '-std=c99', *STRICT, '-DWEFT_NO_FORTRAN_HANDLES')

    def test_names_of_mpi_1(self):
        self.each('old', OLD)

    def test_names_of_mpi_1_only_on_demand(self):
        text = '#include <mpi.h>\n#if defined(MPI_UB) || defined(MPI_COMBINER_STRUCT_INTEGER)\n#error old\n#endif\n' \
               'static int MPI_Address(void) { return 0; }\nint main(void) { return MPI_Address(); }\n'
        self.must([self.compile(self.write('fresh.c', text), '-std=c99', *STRICT)])


if __name__ == '__main__':
    common.main()
