#include "hosts.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <fstream>
#include <sstream>

#include "text.hpp"

namespace mpiexec {
namespace {

// Does an interface of this machine have that address?
bool is_own_address(const std::string& text) {
    in_addr four;
    in6_addr six;
    bool is_four = inet_pton(AF_INET, text.c_str(), &four) == 1, is_six = inet_pton(AF_INET6, text.c_str(), &six) == 1;
    if (!is_four && !is_six) return false;
    if (is_four && (ntohl(four.s_addr) >> 24) == 127) return true;
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return false;
    bool own = false;
    for (ifaddrs* a = all; a; a = a->ifa_next) {
        if (!a->ifa_addr) continue;
        if (is_four && a->ifa_addr->sa_family == AF_INET)
            own |= memcmp(&reinterpret_cast<sockaddr_in*>(a->ifa_addr)->sin_addr, &four, sizeof four) == 0;
        if (is_six && a->ifa_addr->sa_family == AF_INET6)
            own |= memcmp(&reinterpret_cast<sockaddr_in6*>(a->ifa_addr)->sin6_addr, &six, sizeof six) == 0;
    }
    freeifaddrs(all);
    return own;
}

// By name alone: no resolver is asked, so a broken one costs nothing.
bool is_here(const std::string& host) {
    const std::string& own = host_name();
    auto same = [](const std::string& a, const std::string& b) { return strcasecmp(a.c_str(), b.c_str()) == 0; };
    auto first_label = [](const std::string& name) { return name.substr(0, name.find('.')); };
    if (same(host, "localhost") || same(host, own)) return true;
    // One of the two may be fully qualified.
    bool one_is_short = host.find('.') == std::string::npos || own.find('.') == std::string::npos;
    if (one_is_short && same(first_label(host), first_label(own)) && !isdigit(static_cast<unsigned char>(host[0]))) return true;
    return is_own_address(host);
}

int slots_of(const std::string& entry) {
    size_t colon = entry.rfind(':');
    bool six = entry.find(':') != colon;  // an IPv6 address has several and no slots
    std::string host = six || colon == std::string::npos ? entry : entry.substr(0, colon);
    int slots = 1;
    if (!six && colon != std::string::npos) {
        char* end = nullptr;
        slots = int(strtol(entry.c_str() + colon + 1, &end, 10));
        if (*end || end == entry.c_str() + colon + 1 || slots < 1) die(2, "host %s: expected host:slots", entry.c_str());
    }
    if (!is_here(host))
        die(2, "host %s is not this machine (%s); Weft's mpiexec starts ranks on one machine", host.c_str(), host_name().c_str());
    return slots;
}

}  // namespace

int slots_of_list(const std::string& list) {
    int slots = 0;
    std::stringstream in(list);
    for (std::string entry; std::getline(in, entry, ',');)
        if (!entry.empty()) slots += slots_of(entry);
    return slots;
}

int slots_of_file(const std::string& file) {
    std::ifstream in(file);
    if (!in) die(2, "-hostfile %s: %s", file.c_str(), strerror(errno));
    int total = 0;
    for (std::string line; std::getline(in, line);) {
        line = line.substr(0, line.find('#'));
        std::stringstream words(line);
        std::string host, word;
        if (!(words >> host)) continue;
        int slots = slots_of(host);
        while (words >> word)
            if (word.rfind("slots=", 0) == 0 && (slots = atoi(word.c_str() + 6)) < 1)
                die(2, "-hostfile %s: %s: expected a number from 1", file.c_str(), word.c_str());
        total += slots;
    }
    if (total == 0) die(2, "-hostfile %s names no host", file.c_str());
    return total;
}

}  // namespace mpiexec
