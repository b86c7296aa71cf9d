// The main program of a Verilator build. It is cocotb's own, and beside it a bare loop around the same design, for
// measuring what cocotb costs: neither VPI callbacks nor Python run in it.
//
//   TOP                              under cocotb
//   TOP --bare name=hex... [+plus]   sets these public signals and runs until nothing is left to happen

#define main cocotb_main
#include "verilator.cpp"
#undef main

#include <cstring>

static bool set_signal(std::string assignment) {
    const size_t equals = assignment.find('=');
    std::string name = assignment.substr(0, equals);
    std::string digits = assignment.substr(equals + 1);
    const vpiHandle signal = vpi_handle_by_name(&name[0], nullptr);
    if (!signal) {
        fprintf(stderr, "no public signal %s\n", name.c_str());
        return false;
    }
    s_vpi_value value = {};
    value.format = vpiHexStrVal;
    value.value.str = &digits[0];
    vpi_put_value(signal, &value, nullptr, vpiNoDelay);
    return true;
}

static int bare_main(int argc, char **argv) {
    Verilated::commandArgs(argc, argv);
    Vtop top("");
    top.eval();
    for (int i = 2; i < argc; i++)
        if (argv[i][0] != '+' && !set_signal(argv[i])) return 2;
    for (top.eval(); top.eventsPending(); top.eval()) {
        main_time = top.nextTimeSlot();
        Verilated::threadContextp()->time(main_time);
    }
    top.final();
    return 0;
}

int main(int argc, char **argv) {
    const bool bare = argc > 1 && !strcmp(argv[1], "--bare");
    return bare ? bare_main(argc, argv) : cocotb_main(argc, argv);
}
