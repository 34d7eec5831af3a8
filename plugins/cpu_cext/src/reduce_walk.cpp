// The walk of reductions, see reduce_walk.hpp.
#include "reduce_walk.hpp"

#include <math.h>
#include <string.h>

#include "call.hpp"
#include "kernels/half.hpp"
#include "parallel.hpp"

namespace mortice {
namespace {

constexpr int FAN = 128;              // accumulators that are merged at once
constexpr int ENOUGH = 32;            // tasks that keep all threads busy
constexpr int64_t CHUNK = 1 << 17;    // elements of a part, where a result is made from parts
constexpr int64_t STAGE_BYTES = 1 << 16;

int64_t size_of(const Axes &a, int from_end = 0) {
    int64_t n = 1;
    for (int i = 0; i < a.count - from_end; i++) n *= a.shape[i];
    return n;
}

// The offset of the i-th index over the first `count` axes.
int64_t offset(const Axes &a, const int64_t *steps, int count, int64_t i) {
    int64_t at = 0;
    for (int d = count - 1; d >= 0 && i; d--) {
        at += i % a.shape[d] * steps[d];
        i /= a.shape[d];
    }
    return at;
}

void insert(Axes &a, int64_t size, int64_t step, int64_t out) {
    int i = a.count++;
    int64_t length = step < 0 ? -step : step;
    for (; i > 0; i--) {
        int64_t before = a.step[i - 1] < 0 ? -a.step[i - 1] : a.step[i - 1];
        if (before >= length) break;
        a.shape[i] = a.shape[i - 1], a.step[i] = a.step[i - 1], a.out[i] = a.out[i - 1];
    }
    a.shape[i] = size, a.step[i] = step, a.out[i] = out;
}

void merge_axes(Axes &a) {
    int n = 0;
    for (int i = 1; i < a.count; i++) {
        if (a.step[n] == a.shape[i] * a.step[i] && a.out[n] == a.shape[i] * a.out[i]) {
            a.shape[n] *= a.shape[i], a.step[n] = a.step[i], a.out[n] = a.out[i];
        } else {
            n++;
            a.shape[n] = a.shape[i], a.step[n] = a.step[i], a.out[n] = a.out[i];
        }
    }
    if (a.count) a.count = n + 1;
}

void set_identity(const Recipe &r, char *acc, int64_t n) {
    int size = r.acc_size;
    if (size == 4) {
        uint32_t one;
        memcpy(&one, r.identity, 4);
        for (int64_t i = 0; i < n; i++) memcpy(acc + 4 * i, &one, 4);
    } else if (size == 8) {
        uint64_t one;
        memcpy(&one, r.identity, 8);
        for (int64_t i = 0; i < n; i++) memcpy(acc + 8 * i, &one, 8);
    } else {
        for (int64_t i = 0; i < n; i++) memcpy(acc + i * size, r.identity, size);
    }
}

StageKernel stager(const Recipe &r) {
    return r.stage ? r.stage : reduce_kernels().gather[__builtin_ctz(static_cast<unsigned>(r.in_size))];
}

// Accumulators in order, merged FAN at a time: roundings grow with the logarithm of their number.
struct Tree {
    const Recipe &r;
    int used[3] = {0, 0, 0};
    alignas(64) char room[3][FAN * sizeof(Moments)];

    explicit Tree(const Recipe &recipe) : r(recipe) {}
    int space() const { return FAN - used[0]; }
    char *next() { return room[0] + used[0] * r.acc_size; }
    void added(int n) {
        used[0] += n;
        for (int level = 0; level < 3 && used[level] == FAN; level++) {
            int above = level < 2 ? level + 1 : 2;
            alignas(16) char whole[sizeof(Moments)];
            r.merge.rows(room[level], FAN, 1, FAN, whole);
            used[level] = 0;
            memcpy(room[above] + used[above] * r.acc_size, whole, r.acc_size);
            used[above]++;
        }
    }
    void total(char *out) {  // of one or more
        for (int level = 0; level < 2; level++) {
            if (!used[level]) continue;
            r.merge.rows(room[level], used[level], 1, FAN, room[level + 1] + used[level + 1] * r.acc_size);
            used[level + 1]++;
        }
        r.merge.rows(room[2], used[2], 1, FAN, out);
    }
};

// ---- rows: what is reduced lies closest together ----

struct Rows {
    const Reduction &job;
    const Recipe &r;
    StageKernel stage;
    bool direct;
    int64_t n, step, blocks;

    explicit Rows(const Reduction &reduction) : job(reduction), r(job.recipe), stage(stager(r)) {
        int last = job.gone.count - 1;
        n = last < 0 ? 1 : job.gone.shape[last];
        step = last < 0 ? 1 : job.gone.step[last];
        direct = !r.stage && step == 1;
        blocks = (n + ROW_BLOCK - 1) / ROW_BLOCK;
    }

    // `count` rows of `length` elements into accumulators.
    void reduce(const char *p, int64_t length, int64_t count, int64_t apart, char *acc) const {
        if (direct) return r.unit.rows(p, length, count, apart, acc);
        alignas(64) char room[STAGE_BYTES];
        int64_t at_once = STAGE_BYTES / r.staged_size / length;
        for (int64_t i = 0; i < count; i += at_once) {
            int64_t m = count - i < at_once ? count - i : at_once;
            const char *from = p + i * apart * r.in_size;
            if (apart == length * step) {
                stage(from, step, room, m * length);
            } else {
                for (int64_t k = 0; k < m; k++)
                    stage(from + k * apart * r.in_size, step, room + k * length * r.staged_size, length);
            }
            r.unit.rows(room, length, m, length, acc + i * r.acc_size);
        }
    }

    // Each result is one short row: results begin..end.
    void simple(int64_t begin, int64_t end) const {
        const Axes &kept = job.kept;
        int last = kept.count - 1;
        int64_t size = last < 0 ? 1 : kept.shape[last], apart = last < 0 ? 0 : kept.step[last];
        int64_t out_step = last < 0 ? 1 : kept.out[last];
        int out_size = ITEMSIZE[job.finish.out];
        bool in_place = job.finish.how == Finish::COPY && out_step == 1 && out_size == r.acc_size;
        alignas(64) char room[256 * sizeof(Moments)];
        for (int64_t o = begin; o < end;) {
            int64_t i = o % size, run = size - i < end - o ? size - i : end - o;
            const char *p = job.x + (offset(kept, kept.step, last, o / size) + i * apart) * r.in_size;
            char *q = job.out + (offset(kept, kept.out, last, o / size) + i * out_step) * out_size;
            if (in_place) {
                reduce(p, n, run, apart, q);
            } else {
                for (int64_t k = 0; k < run; k += 256) {
                    int64_t m = run - k < 256 ? run - k : 256;
                    reduce(p + k * apart * r.in_size, n, m, apart, room);
                    finish_results(job.finish, room, r.acc_size, m, q + k * out_step * out_size, out_step);
                }
            }
            o += run;
        }
    }

    // The units begin..end of a result whose elements start at p; a unit is a block of a row.
    void add(Tree &tree, const char *p, int64_t begin, int64_t end) const {
        const Axes &gone = job.gone;
        int outer = gone.count - 1;
        for (int64_t u = begin; u < end;) {
            int64_t q = u / blocks, block = u % blocks;
            const char *at = p + offset(gone, gone.step, outer, q) * r.in_size;
            if (blocks == 1) {
                int64_t size = gone.shape[outer - 1], run = size - q % size;
                if (run > end - u) run = end - u;
                if (run > tree.space()) run = tree.space();
                reduce(at, n, run, gone.step[outer - 1], tree.next());
                tree.added(static_cast<int>(run));
                u += run;
                continue;
            }
            int64_t first = block * ROW_BLOCK, length = n - first < ROW_BLOCK ? n - first : ROW_BLOCK;
            char *acc = tree.next();
            reduce(at + first * step * r.in_size, length, 1, 0, acc);
            if (r.indexed) reinterpret_cast<Best *>(acc)->index += first;
            tree.added(1);
            u++;
        }
    }

    void run() const {
        const Axes &kept = job.kept;
        int64_t results = size_of(kept), units = size_of(job.gone, 1) * blocks;
        int out_size = ITEMSIZE[job.finish.out];
        Unlocked free(results * units * (n < ROW_BLOCK ? n : ROW_BLOCK));
        if (units == 1) {
            int64_t grain = 1 + (1 << 16) / (n + 4);
            parallel_for(results, grain, [&](int64_t begin, int64_t end) { simple(begin, end); });
            return;
        }
        auto write = [&](int64_t o, Tree &tree) {
            alignas(16) char acc[sizeof(Moments)];
            tree.total(acc);
            finish_results(job.finish, acc, r.acc_size, 1, job.out + offset(kept, kept.out, kept.count, o) * out_size, 1);
        };
        int64_t length = n < ROW_BLOCK ? n : ROW_BLOCK;
        int64_t in_chunk = 1 + CHUNK / 2 / length, chunks = results >= ENOUGH ? 1 : (units + in_chunk - 1) / in_chunk;
        if (chunks == 1) {
            parallel_for(results, 1 + (1 << 16) / (units * length), [&](int64_t begin, int64_t end) {
                for (int64_t o = begin; o < end; o++) {
                    Tree tree(r);
                    add(tree, job.x + offset(kept, kept.step, kept.count, o) * r.in_size, 0, units);
                    write(o, tree);
                }
            });
            return;
        }
        Scratch<char> parts(results * chunks * r.acc_size);
        parallel_for(results * chunks, 2, [&](int64_t begin, int64_t end) {
            for (int64_t t = begin; t < end; t++) {
                int64_t o = t / chunks, first = t % chunks * in_chunk;
                Tree tree(r);
                add(tree, job.x + offset(kept, kept.step, kept.count, o) * r.in_size, first,
                    first + in_chunk < units ? first + in_chunk : units);
                tree.total(parts + t * r.acc_size);
            }
        });
        for (int64_t o = 0; o < results; o++) {
            Tree tree(r);
            for (int64_t c = 0; c < chunks; c++) {
                memcpy(tree.next(), parts + (o * chunks + c) * r.acc_size, r.acc_size);
                tree.added(1);
            }
            write(o, tree);
        }
    }
};

// ---- columns: what is kept lies closest together ----

// Lines of accumulators that others are added to, in groups of groups where roundings matter.
struct Lines {
    const Recipe &r;
    int64_t width;
    int levels, pending = 0, groups = 0;
    alignas(64) char acc[3][COLUMN_TILE * sizeof(double)];
    alignas(64) char wide[COLUMN_TILE * sizeof(Moments)];

    // Sums of many floats have levels; accumulators of more than 8 bytes have not.
    Lines(const Recipe &recipe, int64_t columns, int64_t lines)
        : r(recipe), width(columns),
          levels(!recipe.cascade || lines <= COLUMN_ROWS ? 1 : lines <= COLUMN_ROWS * COLUMN_ROWS ? 2 : 3) {
        for (int i = 0; i < levels; i++) set_identity(r, at(i), width);
    }
    char *at(int level) { return levels == 1 ? wide : acc[level]; }
    void lift(int level) {
        r.merge.columns(at(level), 1, width, width, at(level + 1), 0);
        set_identity(r, at(level), width);
    }
    void add(const Reducer &kernel, const char *p, int64_t count, int64_t step, int64_t m, int64_t base) {
        kernel.columns(p, count, step, m, at(0), base);
        if (levels == 1 || (pending += static_cast<int>(count)) < COLUMN_ROWS) return;
        pending = 0;
        lift(0);
        if (levels == 2 || ++groups < COLUMN_ROWS) return;
        groups = 0;
        lift(1);
    }
    char *total() {
        for (int i = 1; i < levels; i++) r.merge.columns(at(i), 1, width, width, at(0), 0);
        return at(0);
    }
};

struct Columns {
    const Reduction &job;
    const Recipe &r;
    StageKernel stage;
    bool direct;
    int64_t m, apart, out_step, tiles;  // columns of a line, their steps
    int64_t n, step, lines;             // lines that are `step` apart; all of them
    int64_t folded;                     // lines that are taken for one, being dense and short

    explicit Columns(const Reduction &reduction) : job(reduction), r(job.recipe), stage(stager(r)) {
        int last = job.kept.count - 1, inner = job.gone.count - 1;
        m = job.kept.shape[last], apart = job.kept.step[last], out_step = job.kept.out[last];
        n = inner < 0 ? 1 : job.gone.shape[inner], step = inner < 0 ? 0 : job.gone.step[inner];
        lines = size_of(job.gone);
        direct = !r.stage && apart == 1;
        tiles = (m + COLUMN_TILE - 1) / COLUMN_TILE;
        folded = apart == 1 && step == m && 4 * m <= COLUMN_TILE && n * m > 4096 ? COLUMN_TILE / 2 / m : 1;
    }

    void piece(Lines &to, const char *p, int64_t count, int64_t step_, int64_t width, int64_t base) const {
        alignas(64) char room[STAGE_BYTES];
        int64_t at_once = COLUMN_ROWS;
        if (!direct && at_once > STAGE_BYTES / (width * r.staged_size)) at_once = STAGE_BYTES / (width * r.staged_size);
        for (int64_t i = 0; i < count; i += at_once) {
            int64_t some = count - i < at_once ? count - i : at_once;
            const char *from = p + i * step_ * r.in_size;
            if (direct) {
                to.add(r.unit, from, some, step_, width, base + i);
                continue;
            }
            if (apart == 1 && step_ == width) {
                stage(from, 1, room, some * width);
            } else {
                for (int64_t k = 0; k < some; k++)
                    stage(from + k * step_ * r.in_size, apart, room + k * width * r.staged_size, width);
            }
            to.add(r.unit, room, some, width, width, base + i);
        }
    }

    // Places among folded lines, counted from `first`, as those of lines; there is one run of them.
    void number_lines(Best *acc, int64_t first) const {
        for (int64_t f = 0; f < folded; f++)
            for (int64_t j = 0; j < m; j++) acc[f * m + j].index = acc[f * m + j].index * folded + f + first;
    }

    // The lines begin..end of a tile that starts at p.
    void add(Lines &to, const char *p, int64_t begin, int64_t end, int64_t width) const {
        const Axes &gone = job.gone;
        for (int64_t l = begin; l < end;) {
            int64_t i = l % n, run = n - i < end - l ? n - i : end - l;
            const char *at = p + (offset(gone, gone.step, gone.count - 1, l / n) + i * step) * r.in_size;
            int64_t whole = folded > 1 ? run / folded : 0, rest = run - whole * folded;
            if (whole) piece(to, at, whole, m * folded, m * folded, 0);
            if (whole && r.indexed) number_lines(reinterpret_cast<Best *>(to.at(0)), l);
            if (rest) piece(to, at + whole * folded * step * r.in_size, rest, step, width, l + whole * folded);
            l += run;
        }
    }

    // The accumulators of columns, in `room` where lines were folded.
    const char *unfold(Lines &from, char *room, int64_t width) const {
        char *all = from.total();
        if (folded == 1) return all;
        set_identity(r, room, width);
        r.merge.columns(all, folded, m, m, room, 0);
        return room;
    }

    struct Task {
        const char *x;
        char *out;
        int64_t width;
    };
    Task task(int64_t t) const {
        const Axes &kept = job.kept;
        int64_t o = t / tiles, first = t % tiles * COLUMN_TILE;
        return {job.x + (offset(kept, kept.step, kept.count - 1, o) + first * apart) * r.in_size,
                job.out + (offset(kept, kept.out, kept.count - 1, o) + first * out_step) * ITEMSIZE[job.finish.out],
                m - first < COLUMN_TILE ? m - first : COLUMN_TILE};
    }
    int64_t lines_width(int64_t width) const { return folded > 1 ? m * folded : width; }

    void run() const {
        int64_t width = m < COLUMN_TILE ? m : COLUMN_TILE, tasks = size_of(job.kept, 1) * tiles;
        int64_t in_chunk = CHUNK / width;
        in_chunk = (in_chunk < 256 ? 256 : in_chunk + COLUMN_ROWS - 1) / COLUMN_ROWS * COLUMN_ROWS;
        int64_t chunks = tasks >= ENOUGH ? 1 : (lines + in_chunk - 1) / in_chunk;
        Unlocked free(tasks * width * lines);
        if (chunks == 1) {
            int64_t grain = 1 + (1 << 16) / (lines * width + 64);
            parallel_for(tasks, grain, [&](int64_t begin, int64_t end) {
                alignas(64) char acc[COLUMN_TILE * sizeof(Moments)];
                for (int64_t t = begin; t < end; t++) {
                    Task a = task(t);
                    Lines to(r, lines_width(a.width), lines);
                    add(to, a.x, 0, lines, a.width);
                    finish_results(job.finish, unfold(to, acc, a.width), r.acc_size, a.width, a.out, out_step);
                }
            });
            return;
        }
        Scratch<char> parts(tasks * chunks * width * r.acc_size);
        parallel_for(tasks * chunks, 1, [&](int64_t begin, int64_t end) {
            for (int64_t t = begin; t < end; t++) {
                Task a = task(t / chunks);
                int64_t first = t % chunks * in_chunk;
                Lines to(r, lines_width(a.width), in_chunk);
                add(to, a.x, first, first + in_chunk < lines ? first + in_chunk : lines, a.width);
                char *part = parts + t * width * r.acc_size;
                const char *all = unfold(to, part, a.width);
                if (all != part) memcpy(part, all, a.width * r.acc_size);
            }
        });
        for (int64_t t = 0; t < tasks; t++) {
            Task a = task(t);
            Lines to(r, a.width, chunks);
            const char *p = parts + t * chunks * width * r.acc_size;
            for (int64_t c = 0; c < chunks; c += COLUMN_ROWS)
                to.add(r.merge, p + c * width * r.acc_size, chunks - c < COLUMN_ROWS ? chunks - c : COLUMN_ROWS, width,
                       a.width, 0);
            finish_results(job.finish, to.total(), r.acc_size, a.width, a.out, out_step);
        }
    }
};

void write_float(double value, DType out, char *at) {
    if (out == F64) memcpy(at, &value, 8);
    float single = static_cast<float>(value);
    if (out == F32) memcpy(at, &single, 4);
    if (out == F16) *reinterpret_cast<half *>(at) = baseline::from_float<half>(single);
    if (out == BF16) *reinterpret_cast<bhalf *>(at) = baseline::from_float<bhalf>(single);
}

template <class T> void write_floats(const Finish &f, const char *acc, int64_t n, char *out, int64_t step) {
    T divisor = static_cast<T>(f.divisor);
    int size = ITEMSIZE[f.out];
    if (f.out == dtype_of<T>::value) {  // a mean
        for (int64_t i = 0; i < n; i++) {
            T value;
            memcpy(&value, acc + i * sizeof(T), sizeof(T));
            value /= divisor;
            memcpy(out + i * step * sizeof(T), &value, sizeof(T));
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        T value;
        memcpy(&value, acc + i * sizeof(T), sizeof(T));
        if (f.divide) value /= divisor;
        write_float(static_cast<double>(value), f.out, out + i * step * size);
    }
}

template <int SIZE> void copy_results(const char *acc, int acc_size, int64_t n, char *out, int64_t step) {
    for (int64_t i = 0; i < n; i++) memcpy(out + i * step * SIZE, acc + i * acc_size, SIZE);
}

}  // namespace

void finish_results(const Finish &f, const char *acc, int acc_size, int64_t n, char *out, int64_t step) {
    int size = ITEMSIZE[f.out];
    switch (f.how) {
        case Finish::COPY:  // of a wider integer the low bytes, which come first
            if (step == 1 && size == acc_size) {
                memcpy(out, acc, n * size);
                return;
            }
            if (size == 1) copy_results<1>(acc, acc_size, n, out, step);
            if (size == 2) copy_results<2>(acc, acc_size, n, out, step);
            if (size == 4) copy_results<4>(acc, acc_size, n, out, step);
            if (size == 8) copy_results<8>(acc, acc_size, n, out, step);
            if (size == 16) copy_results<16>(acc, acc_size, n, out, step);
            return;
        case Finish::FLOAT:
            if (f.acc == F32) write_floats<float>(f, acc, n, out, step);
            else write_floats<double>(f, acc, n, out, step);
            return;
        case Finish::INDEX:
            return copy_results<8>(acc + offsetof(Best, index), acc_size, n, out, step);
        case Finish::VARIANCE:
            for (int64_t i = 0; i < n; i++) {
                Moments a;
                memcpy(&a, acc + i * acc_size, sizeof a);
                double variance = a.squares / f.divisor;
                write_float(f.root ? sqrt(variance) : variance, f.out, out + i * step * size);
            }
            return;
        case Finish::LOG:
            for (int64_t i = 0; i < n; i++) {
                Exponents a;
                memcpy(&a, acc + i * acc_size, sizeof a);
                write_float(log(a.sum) + a.top, f.out, out + i * step * size);
            }
    }
}

void Reduction::keep(int64_t size, int64_t step, int64_t out_step) {
    if (size == 1) return;
    if (step < 0) {
        x += (size - 1) * step * recipe.in_size;
        out += (size - 1) * out_step * ITEMSIZE[finish.out];
        step = -step, out_step = -out_step;
    }
    insert(kept, size, step, out_step);
}

void Reduction::drop(int64_t size, int64_t step) {
    if (size == 1) return;
    if (step < 0 && !recipe.indexed) {
        x += (size - 1) * step * recipe.in_size;
        step = -step;
    }
    insert(gone, size, step, 0);
}

void Reduction::run() {
    merge_axes(kept);
    merge_axes(gone);
    auto length = [](int64_t step) { return step < 0 ? -step : step; };
    bool columns = kept.count && (!gone.count || length(kept.step[kept.count - 1]) < length(gone.step[gone.count - 1]));
    if (columns) Columns(*this).run();
    else Rows(*this).run();
}

}  // namespace mortice
