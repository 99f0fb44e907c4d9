"""Every function before MPI is initialised and after it is finalised: those that tables/ allows there work, all others
end the process with a message that names the function and says why. None crashes, none comes back."""
import json
import os

import common
from common import ABI, Programs

with open(os.path.join(common.args.source, 'tables', 'functions.json'), encoding='utf-8') as rows_file:
    ROWS = json.load(rows_file)

STARTS = {'MPI_Init', 'MPI_Init_thread', 'MPI_Session_init'}   # end the phase that is looked at

# Each call in a process of its own. It prints a line a call: the name, how the child ended, and its first line of stderr.
PROGRAM = '''
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void call(int number) {
    switch (number) {
%(cases)s
    }
}
static const char *const names[] = {%(names)s};
int main(int argc, char **argv) {
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        int pipes[2], status;
        if (pipe(pipes) != 0) return 1;
        pid_t child = fork();
        if (child == 0) {
            dup2(pipes[1], 2);
            alarm(20);
            if (argc > 1) {
                MPI_Init(NULL, NULL);
                MPI_Finalize();
            }
            call(i);
            _exit(0);
        }
        close(pipes[1]);
        char text[4000];
        size_t length = 0;
        ssize_t got;
        while (length < sizeof text - 1 && (got = read(pipes[0], text + length, sizeof text - 1 - length)) > 0) length += (size_t)got;
        text[length] = 0;
        close(pipes[0]);
        waitpid(child, &status, 0);
        text[strcspn(text, "\\n")] = 0;
        printf("%%s %%d %%s\\n", names[i], WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), text);
        fflush(stdout);   /* a child must not print it once more */
    }
    return 0;
}
'''


def row(name):
    return ROWS.get(name) or ROWS[name.removesuffix('_c')]


class Phases(Programs):
    def setUp(self):
        super().setUp()
        functions = [f for f in ABI['functions'] if f['name'] not in STARTS and f['returns'] == 'int']
        cases = []
        for i, f in enumerate(functions):
            arguments = ', '.join('0' for p in f['params'] if p['type'] != '...')
            cases.append(f'    case {i}: {f["name"]}({arguments}); break;')
        text = PROGRAM % {'cases': '\n'.join(cases), 'names': ', '.join(f'"{f["name"]}"' for f in functions)}
        self.program = self.link(self.write('phases.c', text), '-std=gnu11', '-w')

    def check(self, words, *arguments):
        lines = self.must([self.program, *arguments], timeout=900).stdout.splitlines()
        self.assertGreater(len(lines), 600)
        for line in lines:
            with self.subTest(line):
                name, status, text = (line.split(' ', 2) + [''])[:3]
                if row(name).get('when') == 'any':
                    # It may find fault with its argument, but not with the time.
                    self.assertGreaterEqual(int(status), 0, line)
                    self.assertNotIn('called before', text, line)
                    self.assertNotIn('called after', text, line)
                else:
                    self.assertEqual(int(status), 16, line)   # MPI_ERR_OTHER
                    self.assertIn(f'{name}: {words}', text, line)

    def test_before_initialisation(self):
        self.check('called before MPI_Init')

    def test_after_finalisation(self):
        self.check('called after MPI_Finalize', 'late')


if __name__ == '__main__':
    common.main()
