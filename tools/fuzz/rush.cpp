// SPDX-License-Identifier: GPL-2.0
// Runs a harness on mutations of a corpus that libFuzzer has found. There is no guidance, which is
// most of the cost of an execution under libFuzzer. Everything runs in one process without
// allocations. An input that makes the harness fail is written to a file, for the sanitized build.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <sys/time.h>
#include <unistd.h>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);

namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t room = 4096;
constexpr std::uint64_t between_looks_at_the_clock = 4096;
constexpr int longest_execution = 10; // seconds of the processor, which others may use, too

/// The input that is being run.
std::array<std::uint8_t, room> input;
volatile std::size_t length;
volatile std::uint64_t executions;
std::string artifact;

// ---------------------------------------------------------------- failures

/// Runs in a signal handler.
void keep_input()
{
    const int fd = open(artifact.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    const char *const told[] = {"Test unit written to ", artifact.c_str(), "\n"};

    if (fd < 0 || write(fd, input.data(), length) != static_cast<ssize_t>(length))
        return;
    close(fd);
    for (const char *const text : told)
        if (write(STDERR_FILENO, text, std::strlen(text)) < 0)
            return;
}

void fail(int signal)
{
    keep_input();
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

void check_progress(int)
{
    static std::uint64_t before = ~std::uint64_t{0};
    const std::uint64_t now = executions;

    if (now == before)
        std::abort();
    before = now;
}

void catch_failures()
{
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP})
        std::signal(signal, fail);
    std::signal(SIGVTALRM, check_progress);
    const itimerval every{{longest_execution, 0}, {longest_execution, 0}};
    setitimer(ITIMER_VIRTUAL, &every, nullptr);
}

// ---------------------------------------------------------------- mutations

/// splitmix64: two multiplications for each number.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next()
    {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }

    /// 0..limit-1
    std::size_t below(std::size_t limit)
    {
        return static_cast<std::size_t>((next() >> 32) * limit >> 32);
    }

private:
    std::uint64_t state_;
};

class Mutator {
public:
    Mutator(std::vector<Bytes> corpus, std::size_t longest, std::uint64_t seed)
        : corpus_(std::move(corpus)), longest_(longest), random_(seed)
    {
    }

    /// Leaves the next input in `input`.
    void make_input()
    {
        const Bytes &start = pick();
        size_ = start.size();
        std::copy(start.begin(), start.end(), input.begin());
        for (std::size_t n = 1 + random_.below(4); n > 0; n--)
            mutate();
        length = size_;
    }

private:
    const Bytes &pick() { return corpus_[random_.below(corpus_.size())]; }
    std::uint8_t *at(std::size_t offset) { return input.data() + offset; }

    void mutate()
    {
        static constexpr std::uint8_t corners[] = {0, 1, 2, 0x7f, 0x80, 0xff};

        if (size_ == 0) {
            insert();
            return;
        }
        std::uint8_t *const p = at(random_.below(size_));
        switch (random_.below(10)) {
        case 0:
        case 1: *p = static_cast<std::uint8_t>(*p ^ 1u << random_.below(8)); break;
        case 2:
        case 3: *p = static_cast<std::uint8_t>(random_.next()); break;
        case 4: *p = corners[random_.below(std::size(corners))]; break;
        case 5: *p = static_cast<std::uint8_t>(*p + random_.below(9) - 4); break;
        case 6: insert(); break;
        case 7: erase(); break;
        case 8: splice(); break;
        case 9: size_ = random_.below(8) ? size_ : random_.below(size_); break;
        }
    }

    void insert()
    {
        const std::size_t count = std::min(1 + random_.below(8), longest_ - size_);
        const std::size_t offset = random_.below(size_ + 1);

        std::memmove(at(offset + count), at(offset), size_ - offset);
        for (std::size_t i = 0; i < count; i++)
            *at(offset + i) = static_cast<std::uint8_t>(random_.next());
        size_ += count;
    }

    void erase()
    {
        const std::size_t offset = random_.below(size_);
        const std::size_t count = std::min(1 + random_.below(8), size_ - offset);

        std::memmove(at(offset), at(offset + count), size_ - offset - count);
        size_ -= count;
    }

    /// Copies a part of another input over a part of this one, at the same place or anywhere.
    void splice()
    {
        const Bytes &other = pick();
        if (other.empty())
            return;
        const std::size_t from = random_.below(other.size());
        const std::size_t to = random_.below(2) ? from : random_.below(size_);
        if (to > size_)
            return;
        const std::size_t count =
            std::min({1 + random_.below(64), other.size() - from, longest_ - to});

        std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(from), count, at(to));
        size_ = std::max(size_, to + count);
    }

    const std::vector<Bytes> corpus_;
    const std::size_t longest_;
    Random random_;
    std::size_t size_ = 0;
};

std::vector<Bytes> read_corpus(const std::vector<std::string> &directories, std::size_t longest)
{
    std::vector<Bytes> corpus;

    for (const auto &directory : directories) {
        for (const auto &entry : std::filesystem::directory_iterator(directory)) {
            std::ifstream file(entry.path(), std::ios::binary);
            Bytes bytes{std::istreambuf_iterator<char>(file), {}};
            bytes.resize(std::min(bytes.size(), longest));
            corpus.push_back(std::move(bytes));
        }
    }
    return corpus;
}

void run_input()
{
    LLVMFuzzerTestOneInput(input.data(), length);
    executions = executions + 1;
}

} // namespace

int main(int argc, char **argv)
{
    CLI::App app("Runs a harness on mutations of a corpus");
    std::uint64_t runs = ~std::uint64_t{0}, seed = std::random_device{}();
    unsigned seconds = 0;
    std::size_t longest = room;
    std::string prefix = "./";
    std::vector<std::string> directories;
    app.add_option("--runs", runs, "number of executions");
    app.add_option("--seconds", seconds, "duration in seconds, instead of --runs");
    app.add_option("--max-len", longest, "longest input in bytes")->check(CLI::Range(std::size_t{1}, room));
    app.add_option("--seed", seed, "seed of the mutations");
    app.add_option("--artifacts", prefix, "prefix of the file for a failing input");
    app.add_option("corpus", directories, "directories of inputs")->required()->check(CLI::ExistingDirectory);
    CLI11_PARSE(app, argc, argv);

    const std::vector<Bytes> corpus = read_corpus(directories, longest);
    if (corpus.empty()) {
        std::fprintf(stderr, "the corpus is empty\n");
        return 2;
    }
    artifact = prefix + "rush-" + std::to_string(seed);
    catch_failures();
    const auto begin = Clock::now();
    for (const Bytes &bytes : corpus) {
        std::copy(bytes.begin(), bytes.end(), input.begin());
        length = bytes.size();
        run_input();
    }
    Mutator mutator(corpus, longest, seed);
    const auto end = seconds ? begin + std::chrono::seconds(seconds) : Clock::time_point::max();
    while (executions < runs &&
           (executions % between_looks_at_the_clock != 0 || Clock::now() < end)) {
        mutator.make_input();
        run_input();
    }
    const std::chrono::duration<double> took = Clock::now() - begin;
    std::printf("seed %llu: %llu executions, %.0f a second\n",
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(executions),
                static_cast<double>(executions) / took.count());
    return 0;
}
