#include "engine/kernel/testing_usable.h"

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/interpret.h"
#include "engine/kernel/random_planes.h"
#include "engine/kernel/text.h"
#include "engine/kernel/verify.h"
#include "engine/kernel/wire.h"

namespace eagle::kernel {
namespace {

// How many ops a run of the region may take.
double work_of(const Region& region) {
  double work = 0;
  for (const Op& op : region.ops) {
    double nested = 1;
    for (const Region& inside : op.regions) nested += work_of(inside);
    work += op.code == Opcode::while_ ? nested * static_cast<double>(op.max_trips) : nested;
  }
  return work;
}

std::string run_problem(const Kernel& kernel, Random& random) {
  Planes planes = random_planes(kernel, 2, random);
  const Planes before = planes;
  if (interpret_launch(kernel, planes.interpreter_planes(), 2, 2).steps > 2)
    return "more steps than asked for";
  const std::vector<Access> access = accesses(kernel);
  for (std::size_t a = 0; a < access.size(); ++a) {
    if (!access[a].written && planes.bytes[a] != before.bytes[a])
      return "a write to " + kernel.arguments[a].name;
  }
  return {};
}

}  // namespace

bool is_cheap(const Kernel& kernel) {
  double elements = 0;
  for (const Argument& argument : kernel.arguments) {
    double table = 1;
    for (const Axis& axis : argument.axes) table *= axis.extent;
    elements += table * argument.type.components();
  }
  return elements < 1e5 && work_of(kernel.body) < 1e4;
}

std::string usable_problem(const Kernel& kernel, Random& random) {
  v1::Kernel message;
  to_message(kernel, message);
  const StatusOr<Kernel> again = verify(message);
  if (!again.ok()) return "its message is refused: " + again.status().to_string();
  if (!(*again == kernel)) return "its message is another kernel";
  const StatusOr<Kernel> from_its_text = from_text(to_text(kernel));
  if (!from_its_text.ok()) return "its text is refused: " + from_its_text.status().to_string();
  if (!(*from_its_text == without_locations(kernel))) return "its text is another kernel";
  if (content_hash(*from_its_text) != content_hash(kernel)) return "its text has another hash";
  if (accesses(kernel).size() != kernel.arguments.size()) return "not one access an argument";
  return is_cheap(kernel) ? run_problem(kernel, random) : std::string();
}

}  // namespace eagle::kernel
