#include "options.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string_view>

#include "hosts.hpp"
#include "text.hpp"

namespace mpiexec {
namespace {

using Strings = std::vector<std::string>;
constexpr int usage_error = 2;

struct Parser {
    Plan plan;
    App app;              // the section being read
    bool app_begun = false;
    int slots = 0;        // from -host and -hostfile
    int per_node = 0;
    int depth = 0;        // of configuration files
    void line(const Strings& words);
    size_t option(const Strings& words, size_t i);
    void end_section();
};

struct Option {
    const char* names;  // space-separated, the first is the documented one
    int arguments;
    const char* usage;  // names of the arguments
    const char* help;   // empty: accepted, not shown
    void (*act)(Parser& p, const std::string* a);
};

int number(const char* option, const std::string& text, int lo, int hi) {
    char* end = nullptr;
    long v = strtol(text.c_str(), &end, 10);
    if (text.empty() || *end || v < lo || v > hi)
        die(usage_error, "-%s %s: expected a number from %d to %d", option, text.c_str(), lo, hi);
    return int(v);
}

void set(std::vector<std::pair<std::string, std::string>>* list, const std::string& name, const std::string& value) {
    if (name.empty() || name.find('=') != std::string::npos) die(usage_error, "\"%s\" cannot name a variable", name.c_str());
    list->emplace_back(name, value);
}

Strings split(const std::string& text, char at) {
    Strings parts;
    size_t from = 0;
    for (size_t i = 0; i <= text.size(); i++)
        if (i == text.size() || text[i] == at) {
            if (i > from) parts.push_back(text.substr(from, i - from));
            from = i + 1;
        }
    return parts;
}

Bind bind_target(const char* option, const std::string& text, int* count) {
    std::string name = text.substr(0, text.find(':'));
    static const std::pair<const char*, Bind> known[] = {
        {"none", Bind::none}, {"hwthread", Bind::hwthread}, {"core", Bind::core}, {"numa", Bind::numa},
        {"socket", Bind::socket}, {"package", Bind::socket}};
    for (const auto& [word, bind] : known) {
        if (name != word) continue;
        if (name.size() != text.size()) *count = number(option, text.substr(name.size() + 1), 1, 1 << 16);
        return bind;
    }
    die(usage_error, "-%s %s: expected none, hwthread, core, numa or socket, with :n for n of them", option, text.c_str());
}

// Members of "a,b:e,b:e:s" up to `limit`; the largest, or 0.
int largest_soft(const std::string& soft, int limit) {
    int best = 0;
    for (const std::string& part : split(soft, ',')) {
        Strings t = split(part, ':');
        if (t.empty() || t.size() > 3) die(usage_error, "-soft %s: expected triplets such as 2:8:2", soft.c_str());
        int from = number("soft", t[0], 0, 1 << 20), to = t.size() > 1 ? number("soft", t[1], 0, 1 << 20) : from;
        int step = t.size() > 2 ? number("soft", t[2], -(1 << 20), 1 << 20) : 1;
        if (step == 0) die(usage_error, "-soft %s: a step of 0", soft.c_str());
        for (int v = from; step > 0 ? v <= to : v >= to; v += step)
            if (v <= limit) best = std::max(best, v);
    }
    return best;
}

[[noreturn]] void manual();

void mca(Parser&, const std::string* a) {
    say("warning: --mca %s %s is an Open MPI setting and is skipped", a[0].c_str(), a[1].c_str());
}

// What matters only where ranks are started on other machines.
void elsewhere(Parser&, const std::string* a) {
    say("warning: \"%s\" chooses how other machines are reached; all ranks start on this one, and it is skipped", a->c_str());
}

// A pattern with nothing in it that fill_pattern (launch.cpp) does not know.
std::string pattern(const char* option, const std::string& text) {
    for (size_t i = 0; i < text.size(); i++) {
        if (text[i] != '%') continue;
        if (++i == text.size() || !strchr("rahp%", text[i]))
            die(usage_error, "-%s %s: %%%s is unknown; %%r is the rank, %%a the program's number, %%h the host, %%p mpiexec's pid, %%%% a %%",
                option, text.c_str(), text.substr(i, 1).c_str());
    }
    return text;
}

void output_files(Parser& p, const char* option, const std::string& out, const std::string& err) {
    p.plan.out_pattern = pattern(option, out);
    p.plan.err_pattern = pattern(option, err);
}

void output(Parser& p, const std::string* a) {
    for (const std::string& word : split(*a, ',')) {
        std::string value = word.find('=') == std::string::npos ? "" : word.substr(word.find('=') + 1);
        if (word == "tag" || word == "rank") p.plan.label = "[%r] ";
        else if (word == "timestamp") p.plan.timestamp = true;
        else if (word == "merge" || word == "merge-stderr-to-stdout") p.plan.merge_stderr = true;
        else if (word.rfind("dir=", 0) == 0 && !value.empty()) output_files(p, "output", value + "/rank.%r/stdout", value + "/rank.%r/stderr");
        else if (word.rfind("file=", 0) == 0 && !value.empty()) output_files(p, "output", value + ".%r.out", value + ".%r.err");
        else die(usage_error, "-output %s: expected tag, timestamp, merge, dir=DIR or file=NAME", word.c_str());
    }
}

// On one machine ranks are dealt out in their order, whatever the slots and nodes.
bool is_their_order(const std::string& text) { return text == "slot" || text == "node"; }

void map_by(Parser& p, const std::string* a) {
    Strings parts = split(*a, ':');
    if (parts.size() == 3 && parts[0] == "ppr" && parts[2] == "node") {
        p.per_node = number("map-by ppr", parts[1], 1, 1 << 20);
    } else if (!is_their_order(*a)) {
        int count;
        p.plan.map = bind_target("map-by", *a, &count);
    }
}

void rank_by(Parser&, const std::string* a) {
    if (!is_their_order(*a)) die(usage_error, "-rank-by %s: ranks are numbered in the order they are started; expected slot or node", a->c_str());
}

void display(Parser& p, const std::string* a) {
    for (const std::string& word : split(*a, ',')) {
        if (word == "map") p.plan.verbose = true;
        else if (word == "bind" || word == "bindings") p.plan.report_bindings = true;
        else die(usage_error, "-display %s: expected map or bind", word.c_str());
    }
}

const Option options[] = {
    {"n np", 1, "N", "number of ranks (default: the slots of -host or -hostfile, the tasks of a Slurm allocation, else 1)",
     [](Parser& p, const std::string* a) { p.app.ranks = number("n", *a, 1, 1 << 20); }},
    {"soft", 1, "LIST", "acceptable numbers of ranks, as 2:8:2,16; the largest one up to -n is taken",
     [](Parser& p, const std::string* a) { p.app.soft = *a; }},
    {"ppn N perhost npernode", 1, "N", "ranks per host; gives the number of ranks where -n is absent",
     [](Parser& p, const std::string* a) { p.per_node = number("ppn", *a, 1, 1 << 20); }},
    {"host hosts H", 1, "A[:K],...", "hosts with slots; they must name this machine",
     [](Parser& p, const std::string* a) {
         int slots = slots_of_list(*a);
         if (slots == 0) die(usage_error, "-host \"%s\" names no host", a->c_str());
         p.slots += slots;
         p.app.host = *a;
     }},
    {"hostfile f machinefile", 1, "FILE", "hosts, one on a line, with :K or slots=K",
     [](Parser& p, const std::string* a) { p.slots += slots_of_file(*a); }},
    {"configfile app", 1, "FILE", "read sections of the command line from FILE, one on a line (# comments, \\ continues)",
     nullptr},
    {"wdir wd", 1, "DIR", "directory in which the ranks start", [](Parser& p, const std::string* a) { p.app.wdir = *a; }},
    {"path", 1, "DIRS", "directories searched for the program before PATH",
     [](Parser& p, const std::string* a) { p.app.path = *a; }},
    {"arch", 1, "NAME", "", [](Parser& p, const std::string* a) { p.app.arch = *a; }},
    {"file", 1, "NAME", "", [](Parser& p, const std::string* a) { p.app.file = *a; }},

    {"env", 2, "NAME VALUE", "set a variable in this section's ranks",
     [](Parser& p, const std::string* a) { set(&p.app.env, a[0], a[1]); }},
    {"envlist", 1, "A,B,...", "pass these variables",
     [](Parser& p, const std::string* a) {
         for (const std::string& name : split(*a, ','))
             if (const char* v = getenv(name.c_str())) set(&p.app.env, name, v);
     }},
    {"genv", 2, "NAME VALUE", "set a variable in all ranks",
     [](Parser& p, const std::string* a) { set(&p.plan.genv, a[0], a[1]); }},
    {"genvlist", 1, "A,B,...", "pass only these variables of mpiexec's environment",
     [](Parser& p, const std::string* a) {
         for (const std::string& name : split(*a, ',')) p.plan.only_variables.push_back(name);
     }},
    {"genvnone envnone", 0, "", "pass nothing of mpiexec's environment",
     [](Parser& p, const std::string*) { p.plan.pass_environment = false; }},
    {"genvall envall", 0, "", "pass all of it (default)",
     [](Parser& p, const std::string*) { p.plan.pass_environment = true; }},
    {"x", 1, "NAME[=VALUE]", "pass or set a variable in all ranks",
     [](Parser& p, const std::string* a) {
         size_t eq = a->find('=');
         if (eq != std::string::npos) return set(&p.plan.genv, a->substr(0, eq), a->substr(eq + 1));
         if (const char* v = getenv(a->c_str())) return set(&p.plan.genv, *a, v);
         say("warning: -x %s: the variable is not set", a->c_str());
     }},

    {"l tag-output prepend-rank label", 0, "", "begin every line of output with the rank; lines stay whole",
     [](Parser& p, const std::string*) { p.plan.label = "[%r] "; }},
    {"prepend-pattern", 1, "TEXT", "begin every line of output with this text (%r rank, %a program, %h host, %p mpiexec's pid)",
     [](Parser& p, const std::string* a) { p.plan.label = pattern("prepend-pattern", *a); }},
    {"timestamp-output", 0, "", "begin every line of output with the time",
     [](Parser& p, const std::string*) { p.plan.timestamp = true; }},
    {"merge-stderr-to-stdout", 0, "", "stderr of the ranks goes where their stdout goes",
     [](Parser& p, const std::string*) { p.plan.merge_stderr = true; }},
    {"outfile-pattern", 1, "FILE", "stdout of each rank to a file (%r rank, %a program, %h host, %p mpiexec's pid); ranks of the same name share it",
     [](Parser& p, const std::string* a) { p.plan.out_pattern = pattern("outfile-pattern", *a); }},
    {"errfile-pattern", 1, "FILE", "the same for stderr",
     [](Parser& p, const std::string* a) { p.plan.err_pattern = pattern("errfile-pattern", *a); }},
    {"output-filename", 1, "DIR", "stdout and stderr of each rank to DIR/rank.%r/stdout and DIR/rank.%r/stderr",
     [](Parser& p, const std::string* a) { output_files(p, "output-filename", *a + "/rank.%r/stdout", *a + "/rank.%r/stderr"); }},
    {"output", 1, "WHAT,...", "tag, timestamp, merge, dir=DIR or file=NAME: as the options above", output},

    {"bind-to", 1, "WHAT[:N]", "none, hwthread, core, numa or socket (default: equal shares of the CPUs, none if ranks "
     "outnumber them)",
     [](Parser& p, const std::string* a) { p.plan.bind = bind_target("bind-to", *a, &p.plan.bind_count); }},
    {"map-by", 1, "WHAT", "deal the ranks out over these in turn; slot or node (in their order); ppr:N:node (as -ppn N)", map_by},
    {"rank-by", 1, "WHAT", "", rank_by},
    {"display", 1, "WHAT,...", "map (as -v), bind (as -report-bindings)", display},
    {"report-bindings", 0, "", "say which CPUs each rank gets",
     [](Parser& p, const std::string*) { p.plan.report_bindings = true; }},
    {"oversubscribe nooversubscribe allow-run-as-root use-hwthread-cpus", 0, "", "", [](Parser&, const std::string*) {}},

    {"timeout", 1, "SECONDS", "say what every rank waits for and end the job after this time, status 124 (also MPIEXEC_TIMEOUT)",
     [](Parser& p, const std::string* a) { p.plan.timeout_s = number("timeout", *a, 1, 1 << 30); }},
    {"print-all-exitcodes", 0, "", "say how every rank ended",
     [](Parser& p, const std::string*) { p.plan.all_exit_codes = true; }},
    {"initial-errhandler", 1, "NAME", "mpi_errors_are_fatal (default), mpi_errors_abort or mpi_errors_return",
     [](Parser& p, const std::string* a) {
         if (*a != "mpi_errors_are_fatal" && *a != "mpi_errors_abort" && *a != "mpi_errors_return")
             die(usage_error, "-initial-errhandler %s: expected mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return",
                 a->c_str());
         p.plan.initial_errhandler = *a;
     }},
    {"memory-alloc-kinds", 1, "KINDS", "kinds of memory the program asks for, as mpi,system",
     [](Parser& p, const std::string* a) { p.plan.memory_kinds = *a; }},
    {"shared-heap", 0, "", "what malloc returns lies in memory that all ranks reach at the same address (also MPIEXEC_SHARED_HEAP=1)",
     [](Parser& p, const std::string*) { p.plan.shared_heap = true; }},
    {"mca gmca pmixmca prtemca", 2, "NAME VALUE", "", mca},
    {"launcher bootstrap launcher-exec bootstrap-exec rmk iface", 1, "NAME", "", elsewhere},
    {"dry-run do-not-launch", 0, "", "say what would start where, and start nothing",
     [](Parser& p, const std::string*) { p.plan.dry_run = true; }},
    {"v verbose", 0, "", "say what is started", [](Parser& p, const std::string*) { p.plan.verbose = true; }},
    {"version V", 0, "", "say the version", [](Parser&, const std::string*) {
         printf("mpiexec (Weft) %s\n", WEFT_VERSION);
         end_of_answer();
     }},
    {"man", 0, "", "", [](Parser&, const std::string*) { manual(); }},
    {"h help", 0, "", "show this text", nullptr},
};

std::string names_of(const Option& o) {
    std::string text;
    for (const std::string& name : split(o.names, ' ')) text += (text.empty() ? "-" : ", -") + name;
    return text;
}

[[noreturn]] void help() {
    printf("mpiexec starts the ranks of an MPI program on this machine.\n\n"
           "Usage: mpiexec [options] program [arguments] [: [options] program [arguments] ...]\n\n"
           "Options take one or two dashes.\n");
    for (const Option& o : options) {
        if (!*o.help) continue;
        std::string left = "  " + names_of(o) + (*o.usage ? " " : "") + o.usage;
        if (left.size() > 34) left += "\n" + std::string(36, ' ');
        else left.resize(36, ' ');
        printf("%s%s\n", left.c_str(), o.help);
    }
    printf("\nThe exit status is the largest of the ranks', 128 + the signal for a rank that a signal killed.\n");
    end_of_answer();
}

std::string roff(const std::string& text) {
    std::string out;
    for (char c : text) out += c == '-' ? "\\-" : c == '\\' ? "\\e" : std::string(1, c);
    return out;
}

const struct Example {
    const char *line, *what;
} examples[] = {
    {"mpiexec -n 4 ./program input.dat", "Four ranks of a program with an argument, each on its share of the CPUs"},
    {"mpiexec -n 1 ./master : -n 3 ./worker", "Two programs in one job; the master is rank 0"},
    {"mpiexec -l -n 4 ./program", "Every line of output begins with its rank, and lines stay whole"},
    {"mpiexec -outfile-pattern out.%r -n 4 ./program", "The output of each rank in a file of its own: out.0, out.1, ..."},
    {"mpiexec --timeout 600 -n 4 ./program", "A program that may hang: after ten minutes, say what every rank waits for and end it"},
    {"mpiexec --bind-to core --report-bindings -n 2 ./program", "One core for each rank, and say which"},
    {"mpiexec --bind-to none -n 64 ./program", "More ranks than CPUs, wherever the system puts them"},
    {"mpiexec -x OMP_NUM_THREADS=2 -n 4 ./program", "A variable for all ranks"},
    {"mpiexec -n 1 gdb ./program : -n 3 ./program", "Rank 0 under a debugger, at the terminal"},
    {"mpiexec -n 4 xterm -e gdb ./program", "Every rank under a debugger in a window of its own"},
    {"mpiexec -n 2 valgrind --log-file=memory.%p ./program", "Every rank under memcheck"},
    {"mpiexec --shared-heap -n 4 ./program", "Buffers of malloc are copied between ranks once, or not at all"},
    {"mpiexec --dry-run -v -n 4 ./program", "Say what would start where"},
};

// The manual page, from the same table; the build writes it to a file.
[[noreturn]] void manual() {
    printf(".TH MPIEXEC 1 \"\" \"Weft %s\"\n.SH NAME\nmpiexec, mpirun \\- start the ranks of an MPI program on this machine\n"
           ".SH SYNOPSIS\n.B mpiexec\n[options] program [arguments] [: [options] program [arguments] ...]\n"
           ".SH DESCRIPTION\nStarts one process per rank, hands each its place in the job, and watches them. Ranks of one job end\n"
           "together: when one fails, aborts or leaves without MPI_Finalize, the others get SIGTERM and, two seconds later,\n"
           "SIGKILL; when mpiexec itself is killed, so are they. Each rank is in a process group of its own, but at a\n"
           "terminal rank 0 is in mpiexec's, and has the terminal. Rank 0 reads mpiexec's stdin, the others /dev/null. SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT\n"
           "are passed on; a second SIGINT kills the job at once, a second Ctrl-C if it comes within 5 seconds.\n"
           ".SH OPTIONS\nOptions take one or two dashes.\n", WEFT_VERSION);
    for (const Option& o : options)
        if (*o.help) printf(".TP\n.B %s\n%s.\n",
                            roff(names_of(o) + (*o.usage ? " " : "") + o.usage).c_str(), roff(o.help).c_str());
    printf(".SH EXIT STATUS\nThe largest of the ranks', with 128 + the signal for a rank that a signal killed; the code of\n"
           "MPI_Abort; 124 after \\-timeout; 127 or 126 for a program that cannot be run; 2 for a wrong command line.\n"
           ".SH ENVIRONMENT\n.TP\n.B MPIEXEC_TIMEOUT\nSeconds, as \\-timeout.\n"
           ".TP\n.B MPIEXEC_SHARED_HEAP\n1: as \\-shared\\-heap.\n"
           ".TP\n.B WEFT_RANK, WEFT_SIZE\nSet in every rank.\n.SH EXAMPLES\n");
    for (const Example& e : examples) printf(".TP\n.B %s\n%s.\n", roff(e.line).c_str(), roff(e.what).c_str());
    end_of_answer();
}

size_t distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); j++) row[j] = j;
    for (size_t i = 1; i <= a.size(); i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); j++) {
            size_t above = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
            diagonal = above;
        }
    }
    return row[b.size()];
}

[[noreturn]] void unknown(const std::string& word, const std::string& name) {
    std::string best;
    size_t least = SIZE_MAX;
    for (const Option& o : options)
        for (const std::string& known : split(o.names, ' '))
            if (size_t d = distance(name, known); d < least) least = d, best = known;
    // A third of the letters may be wrong; what is further off helps nobody.
    if (least > std::max<size_t>(name.size() / 3, 1) || least >= name.size())
        die(usage_error, "unknown option %s (mpiexec -h lists all)", word.c_str());
    die(usage_error, "unknown option %s; the nearest known one is -%s (mpiexec -h lists all)", word.c_str(), best.c_str());
}

const Option* find(const std::string& name) {
    for (const Option& o : options)
        for (const std::string& known : split(o.names, ' '))
            if (known == name) return &o;
    return nullptr;
}

// Words of one line of a configuration file: blanks separate, quotes and backslashes protect.
Strings words_of(const std::string& text) {
    Strings words;
    std::string word;
    bool in_word = false;
    char quote = 0;
    for (size_t i = 0; i < text.size(); i++) {
        char c = text[i];
        if (quote ? c == quote : c == '"' || c == '\'') {
            quote = quote ? 0 : c;
            in_word = true;
        } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
            word += text[++i];
            in_word = true;
        } else if (!quote && (c == ' ' || c == '\t' || c == '\r')) {
            if (in_word) words.push_back(word);
            word.clear();
            in_word = false;
        } else if (!quote && !in_word && c == '#') {
            break;
        } else {
            word += c;
            in_word = true;
        }
    }
    if (quote) die(usage_error, "a quote is not closed in: %s", text.c_str());
    if (in_word) words.push_back(word);
    return words;
}

void config_file(Parser& p, const std::string& name) {
    if (++p.depth > 8) die(usage_error, "-configfile %s: configuration files include each other", name.c_str());
    std::ifstream in(name);
    if (!in) die(usage_error, "-configfile %s: %s", name.c_str(), strerror(errno));
    std::string line, whole;
    while (std::getline(in, line)) {
        whole += line;
        if (!whole.empty() && whole.back() == '\\') {
            whole.pop_back();
            continue;
        }
        Strings words = words_of(whole);
        whole.clear();
        if (words.empty()) continue;
        p.line(words);
        p.end_section();
    }
    if (!words_of(whole).empty()) {
        p.line(words_of(whole));
        p.end_section();
    }
    p.depth--;
}

// Reads the option at words[i]; returns the index after its arguments.
size_t Parser::option(const Strings& words, size_t i) {
    std::string name = words[i].substr(words[i][1] == '-' ? 2 : 1);
    Strings given;
    const Option* o = find(name);
    size_t eq = name.find('=');
    if (!o && eq != std::string::npos && (o = find(name.substr(0, eq))) && o->arguments == 1) {
        given.push_back(name.substr(eq + 1));
        name.resize(eq);
    } else if (!o || eq != std::string::npos) {
        unknown(words[i], name.substr(0, eq));
    }
    i++;
    while (int(given.size()) < o->arguments) {
        if (i == words.size()) die(usage_error, "-%s needs %s", name.c_str(), o->usage);
        given.push_back(words[i++]);
    }
    if (o->act) o->act(*this, given.data());
    else if (name[0] == 'h') help();
    else config_file(*this, given[0]);
    return i;
}

void Parser::end_section() {
    // A line of nothing but settings for the whole job makes no program.
    if (!app_begun) return;
    if (app.argv.empty()) die(usage_error, "no program to run (mpiexec -h shows the usage)");
    plan.apps.push_back(std::move(app));
    app = App{};
    app_begun = false;
}

void Parser::line(const Strings& words) {
    for (size_t i = 0; i < words.size();) {
        if (words[i] == ":") {
            app_begun = true;
            end_section();
            i++;
            app_begun = true;  // a program must follow
            continue;
        }
        if (words[i].size() > 1 && words[i][0] == '-' && words[i] != "--") {
            i = option(words, i);
            continue;
        }
        if (words[i] == "--") i++;
        app_begun = true;
        while (i < words.size() && words[i] != ":") app.argv.push_back(words[i++]);
    }
}

// In a batch allocation, without -n, every task of it becomes a rank.
int allocated_slots() {
    const char* tasks = getenv("SLURM_NTASKS");
    const char* nodes = getenv("SLURM_JOB_NUM_NODES");
    if (!tasks || !nodes || atoi(tasks) < 1) return 0;
    if (atoi(nodes) == 1) return atoi(tasks);
    say("warning: the allocation has %d nodes, and all ranks start on this one; -n says how many", atoi(nodes));
    return 0;
}

void settle_ranks(Parser& p) {
    int unsaid = 0, total = 0;
    for (App& a : p.plan.apps) {
        if (!a.soft.empty()) {
            int limit = a.ranks ? a.ranks : 1 << 20;
            a.ranks = largest_soft(a.soft, limit);
            if (!a.ranks) die(usage_error, "-soft %s allows no number of ranks from 1 to %d", a.soft.c_str(), limit);
        }
        unsaid += a.ranks == 0;
        total += a.ranks;
    }
    int slots = p.per_node ? p.per_node : p.slots;
    if (!slots && unsaid) slots = allocated_slots();
    for (App& a : p.plan.apps)
        if (!a.ranks) total += a.ranks = unsaid == 1 && slots > total ? slots - total : 1;
    if (total > 1 << 16) die(usage_error, "%d ranks are more than this mpiexec can watch (%d)", total, 1 << 16);
}

}  // namespace

Plan parse(const Strings& line) {
    Parser p;
    if (const char* limit = getenv("MPIEXEC_TIMEOUT"); limit && *limit)
        p.plan.timeout_s = number("timeout (MPIEXEC_TIMEOUT)", limit, 1, 1 << 30);
    if (const char* wanted = getenv("MPIEXEC_SHARED_HEAP"); wanted && *wanted)
        p.plan.shared_heap = number("shared-heap (MPIEXEC_SHARED_HEAP)", wanted, 0, 1) != 0;
    p.line(line);
    p.end_section();
    if (p.plan.apps.empty()) die(usage_error, "no program to run (mpiexec -h shows the usage)");
    settle_ranks(p);
    return std::move(p.plan);
}

}  // namespace mpiexec
