// eaglectl: the operator's tool. What it can do is in program.cpp and the files of the groups of commands.
#include <exception>
#include <iostream>

#include "client/ctl/program.h"

int main(int argc, char** argv) {
  try {
    return eagle::ctl::run(argc, argv);
  } catch (const std::exception& error) {  // memory, or a library's
    std::cerr << "eaglectl: " << error.what() << '\n';
    return static_cast<int>(eagle::ctl::Exit::refused);
  }
}
