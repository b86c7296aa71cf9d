// The main program of a Verilator build. It is cocotb's own, and beside it a bare loop around the same design, for
// measuring what cocotb costs: neither VPI callbacks nor Python run in it.
//
//   TOP                              under cocotb
//   TOP --bare name=hex... [+plus]   sets these public signals and runs until nothing is left to happen

#if VM_TRACE_FST
#include "Vtop.h"
#include "verilated_fst_c.h"

// Waves from +waves_begin=NS to before +waves_end=NS; without these, all.
class WindowedFst : public VerilatedFstC {
    std::string file;

    static uint64_t ps(const char *name, uint64_t otherwise) {
        const std::string given = Verilated::threadContextp()->commandArgsPlusMatch(name);
        return given.empty() ? otherwise : 1000 * std::stoull(given.substr(given.find('=') + 1));
    }
    const uint64_t begin = ps("waves_begin=", 0);
    const uint64_t end = ps("waves_end=", ~uint64_t{0});

  public:
    void open(const char *name) { file = name; }
    void dump(uint64_t time) {
        if (time < begin || time >= end) return;
        if (!isOpen()) VerilatedFstC::open(file.c_str());
        VerilatedFstC::dump(time);
    }
};
#define VerilatedFstC WindowedFst
#endif

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
