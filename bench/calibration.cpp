// The compiled loop that shows how fast this machine is (bench/calibration.py). As simulators do, it computes,
// branches on data that nobody can foresee, and follows references to records that the first caches do not hold.

#include <cstdint>
#include <utility>
#include <vector>

namespace {

constexpr std::uint64_t RECORDS = 1 << 12;

struct alignas(64) Record {
    std::uint64_t next = 0;
    std::uint64_t sum = 0;
};

std::uint64_t drawn(std::uint64_t x) {
    x ^= x << 13;
    x ^= x >> 7;
    return x ^ x << 17;
}

}  // namespace

extern "C" std::uint64_t calibration_loop(std::uint64_t steps) {
    std::vector<Record> records(RECORDS);
    std::uint64_t random = 88172645463325252ULL;
    for (std::uint64_t i = 0; i < RECORDS; ++i) records[i].next = i;
    // One cycle through all records, in an order that no prefetcher finds.
    for (std::uint64_t i = RECORDS - 1; i > 0; --i) {
        random = drawn(random);
        std::swap(records[i].next, records[random % i].next);
    }
    std::uint64_t place = 0;
    for (std::uint64_t i = 0; i < steps; ++i) {
        Record &record = records[place];
        random = drawn(random);
        if (random & 1) record.sum += random;
        else record.sum ^= random >> 3;
        if ((record.sum & 6) == 0) random += record.sum;
        place = record.next;
    }
    return random + place;
}
