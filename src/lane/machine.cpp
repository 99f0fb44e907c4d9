#include "lane/machine.hpp"

namespace weft::lane {

Machine know_machine() {
    __builtin_cpu_init();
    return {__builtin_cpu_is("amdfam17h") != 0 || __builtin_cpu_is("amdfam19h") != 0, __builtin_cpu_is("amd") == 0};
}

}  // namespace weft::lane
