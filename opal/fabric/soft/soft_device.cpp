// The client's side of the software device.
#include "opal/fabric/fabric.hpp"

namespace overlap::fabric {

std::unique_ptr<Device> open_soft(const SoftOptions&) { throw Error(Error::Kind::no_device, "the software device is not built yet"); }

}  // namespace overlap::fabric
