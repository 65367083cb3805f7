#include "eagle/client/shards.h"

#include "eagle/v1/run.pb.h"
#include "engine/step/result_message.h"

namespace eagle {

std::string to_bytes(const RunResult& result) {
  v1::RunResult message;
  step::describe(result, message);
  return message.SerializeAsString();
}

StatusOr<RunResult> result_from_bytes(std::string_view bytes) {
  v1::RunResult message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Status(Reason::bad_message, "expected the bytes of a run's result, found " +
                                           std::to_string(bytes.size()) + " bytes that are not");
  return step::result_of(message);
}

}  // namespace eagle
