// The definitions of toml++, for programs that bring it along.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
