// Configuration files of any text: taken, or refused with the file's name and a cure.
#include <string>

#include "server/config_file.h"
#include "tests/fuzz/target.h"

namespace eagle::fuzz {

std::vector<std::string> seeds() {
  return {
      "",
      "threads = 4\nplane-budget = 1000000\nlog-level = \"debug\"\n",
      "[[listen]]\nendpoint = \"unix:/run/eagled/eagled.sock\"\nidentity = \"uid\"\n\n"
      "[[listen]]\nendpoint = \"dns:0.0.0.0:7411\"\nidentity = \"token\"\n",
      "[tls]\ncert = \"c.pem\"\nkey = \"k.pem\"\nclient-ca = \"ca.pem\"\n\n[tokens]\nfile = \"tokens\"\n",
      "[[tenant]]\nname = \"physics\"\nprincipals = [\"uid:1000\", \"token:batch\"]\nweight = 3\npriority = "
      "1\n",
      "[[tenant]]\nname = \"a\"\nprincipals = []\nweight = -1\nquotas = { jobs = 1.5 }\n",
      "thread = 4\n",
      "threads = \"many\"\n[listen]\n",
      "a = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n",
      "x = \"\\u00e9\\U0010ffff\"\ny = 1979-05-27T07:32:00Z\nz = 0xdead_beef\n",
  };
}

}  // namespace eagle::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace eagle;
  const std::string text(reinterpret_cast<const char*>(data), size);
  server::ProgramOptions options;
  const auto never = [](const std::string&) { return false; };
  const Status read = server::read_config(text, "eagled.toml", never, options);
  if (!read.ok() && read.message().find("eagled.toml") == std::string::npos) {
    fuzz::broken("an error that does not name the file: " + read.to_string());
  }
  return 0;
}
