// hwloc as an archive asks for libudev, by which it names disks. Nothing here looks at devices, so an answer of "not there"
// serves, and mpiexec runs where libudev is not installed.
#include <stddef.h>

void* udev_new(void) { return NULL; }
void* udev_unref(void* udev) { return NULL; }
void* udev_device_new_from_subsystem_sysname(void* udev, const char* subsystem, const char* name) { return NULL; }
void* udev_device_unref(void* device) { return NULL; }
const char* udev_device_get_property_value(void* device, const char* key) { return NULL; }
