// mpiexec: starts the ranks of an MPI program on this machine, and answers for them until the last one has ended.
#include <fcntl.h>
#include <unistd.h>

#include "binding.hpp"
#include "job.hpp"
#include "options.hpp"
#include "text.hpp"

using namespace mpiexec;

// Descriptors 0 to 2 must be open, or sockets of ours would become a rank's stdout.
static void fill_standard_descriptors() {
    int fd;
    do fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= 2);
    if (fd > 2) close(fd);
}

static std::vector<Start> place(const Plan& plan) {
    std::vector<Start> starts;
    for (size_t a = 0; a < plan.apps.size(); a++)
        for (int i = 0; i < plan.apps[a].ranks; i++) starts.push_back({int(starts.size()), int(a), {}, {}});
    bind_ranks(plan, &starts);
    return starts;
}

static void show(const Plan& plan, const std::vector<Start>& starts) {
    for (const Start& s : starts) {
        std::string line;
        for (const std::string& word : plan.apps[size_t(s.app)].argv) line += " " + word;
        say("rank %d on %s:%s", s.rank, host_name().c_str(), line.c_str());
    }
}

int main(int argc, char** argv) {
    fill_standard_descriptors();
    Plan plan = parse(std::vector<std::string>(argv + 1, argv + argc));
    std::vector<Start> starts = place(plan);
    if (plan.verbose || plan.dry_run) show(plan, starts);
    if (plan.dry_run) return 0;
    return Job(plan, std::move(starts)).run();
}
