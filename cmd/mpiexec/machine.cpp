#include "machine.hpp"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <string>

#include "text.hpp"

namespace mpiexec {
namespace {

using weft::boot::Locality;

// The objects behind boot::Level.
constexpr hwloc_obj_type_t types[] = {HWLOC_OBJ_MACHINE, HWLOC_OBJ_PACKAGE, HWLOC_OBJ_NUMANODE,
                                      HWLOC_OBJ_L3CACHE, HWLOC_OBJ_CORE,    HWLOC_OBJ_PU};
static_assert(std::size(types) == weft::boot::levels);

// Plugins are for devices; loading them costs more than all the rest. The only way to have none is this variable, which the
// ranks' own hwloc must not inherit.
class WithoutPlugins {
public:
    WithoutPlugins() {
        if (const char* path = getenv(name)) path_ = path, given_ = true;
        setenv(name, "", 1);
    }
    ~WithoutPlugins() { given_ ? setenv(name, path_.c_str(), 1) : unsetenv(name); }

private:
    static constexpr char name[] = "HWLOC_PLUGINS_PATH";
    std::string path_;
    bool given_ = false;
};

constexpr unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED
#if HWLOC_API_VERSION >= 0x00020800
                                | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS
#endif
    ;

// Only what ranks are dealt out by; no devices, no looking at each CPU from within itself. CPUs that are not allowed stay, so
// that a core is named the same by every job; cpus() leaves them out.
bool load(hwloc_topology_t* topology) {
    WithoutPlugins none;
    if (hwloc_topology_init(topology) != 0) return false;
    hwloc_topology_set_all_types_filter(*topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    for (hwloc_obj_type_t type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_CORE})
        hwloc_topology_set_type_filter(*topology, type, HWLOC_TYPE_FILTER_KEEP_ALL);
    // NUMA nodes within a package hang from groups; without those, hwloc gives them the package's CPUs.
    hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
    hwloc_topology_set_components(*topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
    hwloc_topology_set_flags(*topology, flags);
    return hwloc_topology_load(*topology) == 0;
}

// hwloc itself says nothing about a description that it cannot read.
void warn_of_description() {
    if (getenv("HWLOC_THISSYSTEM")) return;
    for (const char* name : {"HWLOC_SYNTHETIC", "HWLOC_XMLFILE"})
        if (const char* text = getenv(name)) say("hwloc cannot read %s=%s; taking the machine as it is", name, text);
}

}  // namespace

std::vector<int> allowed_cpus() {
    std::vector<int> cpus;
    for (size_t most = 1024; most <= 1 << 20; most *= 4) {
        cpu_set_t* set = CPU_ALLOC(most);
        size_t bytes = CPU_ALLOC_SIZE(most);
        bool ok = sched_getaffinity(0, bytes, set) == 0;
        int error = errno;
        for (size_t c = 0; ok && c < most; c++)
            if (CPU_ISSET_S(c, bytes, set)) cpus.push_back(int(c));
        CPU_FREE(set);
        if (ok || error != EINVAL) break;
    }
    if (cpus.empty()) cpus.push_back(0);
    return cpus;
}

Machine::Machine() {
    if (!load(&topology_)) die(1, "hwloc cannot describe this machine: %s (errno %d)", strerror(errno), errno);
    real_ = hwloc_topology_is_thissystem(topology_);
    for (hwloc_obj_t pu : objects(HWLOC_OBJ_PU)) cpus_.push_back(int(pu->os_index));
    if (!real_) return;
    warn_of_description();
    std::vector<int> allowed = allowed_cpus();
    auto not_allowed = [&](int cpu) { return !std::binary_search(allowed.begin(), allowed.end(), cpu); };
    cpus_.erase(std::remove_if(cpus_.begin(), cpus_.end(), not_allowed), cpus_.end());
    if (cpus_.size() != allowed.size()) cpus_ = allowed;  // where /sys is hidden, hwloc guesses
}

Machine::~Machine() { hwloc_topology_destroy(topology_); }

std::vector<hwloc_obj_t> Machine::objects(hwloc_obj_type_t type) const {
    std::vector<hwloc_obj_t> found;
    for (hwloc_obj_t o = nullptr; (o = hwloc_get_next_obj_by_type(topology_, type, o));)
        if (!hwloc_bitmap_iszero(o->cpuset)) found.push_back(o);
    return found;
}

std::vector<int> Machine::dealt(hwloc_const_bitmap_t cpuset) const {
    std::vector<int> cpus;
    for (int cpu : cpus_)
        if (hwloc_bitmap_isset(cpuset, unsigned(cpu))) cpus.push_back(cpu);
    return cpus;
}

std::vector<std::vector<int>> Machine::units(Bind kind) const {
    hwloc_obj_type_t type = kind == Bind::socket ? HWLOC_OBJ_PACKAGE
                            : kind == Bind::numa ? HWLOC_OBJ_NUMANODE
                            : kind == Bind::core ? HWLOC_OBJ_CORE
                                                 : HWLOC_OBJ_PU;
    std::vector<std::vector<int>> found;
    for (hwloc_obj_t o : objects(type)) {
        std::vector<int> cpus = dealt(o->cpuset);
        // Two kinds of memory beside the same CPUs are two NUMA nodes, but one group of CPUs.
        if (!cpus.empty() && std::find(found.begin(), found.end(), cpus) == found.end()) found.push_back(std::move(cpus));
    }
    // Some virtual machines tell neither packages nor cores.
    if (!found.empty()) return found;
    return kind == Bind::core ? units(Bind::hwthread) : std::vector<std::vector<int>>{cpus_};
}

Locality Machine::locality(const std::vector<int>& cpus) const {
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (int cpu : cpus) hwloc_bitmap_set(set, unsigned(cpu));
    Locality locality;
    hwloc_obj_t thread = cpus.empty() ? nullptr : hwloc_get_pu_obj_by_os_index(topology_, unsigned(cpus[0]));
    for (int level = weft::boot::package; thread && level < weft::boot::levels; level++) {
        hwloc_obj_t o = thread;
        if (types[level] == HWLOC_OBJ_NUMANODE) {
            o = nullptr;
            for (hwloc_obj_t node : objects(HWLOC_OBJ_NUMANODE))
                if (!o && hwloc_bitmap_isset(node->cpuset, thread->os_index)) o = node;
        } else if (types[level] != HWLOC_OBJ_PU) {
            o = hwloc_get_ancestor_obj_by_type(topology_, types[level], thread);
        }
        if (o) locality.at[level] = hwloc_bitmap_isincluded(set, o->cpuset) ? hwloc_bitmap_first(o->cpuset) : Locality::spread;
    }
    hwloc_bitmap_free(set);
    return locality;
}

}  // namespace mpiexec
