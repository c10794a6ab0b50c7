// The dynamic program of the sub-sequence kernel, vectorised by hand: what the machine can do.
//
// One vector lane per pair of strings, groups of 16 columns of nearly equal length against one row string at a time,
// the recurrence of seqopt/kernels/engines/compiled.py with match decay 1:
//
//     P_1 = [a_j = b_k],  P_{i+1} = [a_j = b_k] R_i,  h_i += P_i,  R_i <- gap R_i + C_i[k],  C_i[k] <- gap C_i[k] + P_i
//
// and, on request, the same differentiated in the gap decay. R_i and h_i are registers. One, two or three rows are
// treated in one pass over the columns, so that C_i[k] is loaded and stored once for all of them: which number is best
// depends on the registers that are left, so the caller tries them.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#define INLINE inline __attribute__((always_inline))

namespace {

constexpr int GROUP = 16;
constexpr std::uint16_t PADDING = 65535;
constexpr std::size_t CACHE_LINE = 64;

// ---- Vectors: lanes, comparison of symbols, a value kept where they are equal. ----

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
constexpr const char* INSTRUCTIONS = "AVX-512";

template <class T>
struct Simd;

template <>
struct Simd<float> {
    using Vector = __m512;
    using Symbols = __m256i;
    using Mask = __mmask16;
    static constexpr int LANES = 16;
    static INLINE Vector all(float x) { return _mm512_set1_ps(x); }
    static INLINE Vector load(const float* p) { return _mm512_load_ps(p); }
    static INLINE void store(float* p, Vector x) { _mm512_store_ps(p, x); }
    static INLINE Vector fma(Vector x, Vector y, Vector z) { return _mm512_fmadd_ps(x, y, z); }
    static INLINE Vector add(Vector x, Vector y) { return _mm512_add_ps(x, y); }
    static INLINE Symbols symbols(const std::uint16_t* p) { return _mm256_loadu_si256((const __m256i*)p); }
    static INLINE Symbols all_symbols(std::uint16_t s) { return _mm256_set1_epi16((short)s); }
    static INLINE Mask equal(Symbols x, Symbols y) { return _mm256_cmpeq_epi16_mask(x, y); }
    static INLINE Vector keep(Mask m, Vector x) { return _mm512_maskz_mov_ps(m, x); }
};

template <>
struct Simd<double> {
    using Vector = __m512d;
    using Symbols = __m128i;
    using Mask = __mmask8;
    static constexpr int LANES = 8;
    static INLINE Vector all(double x) { return _mm512_set1_pd(x); }
    static INLINE Vector load(const double* p) { return _mm512_load_pd(p); }
    static INLINE void store(double* p, Vector x) { _mm512_store_pd(p, x); }
    static INLINE Vector fma(Vector x, Vector y, Vector z) { return _mm512_fmadd_pd(x, y, z); }
    static INLINE Vector add(Vector x, Vector y) { return _mm512_add_pd(x, y); }
    static INLINE Symbols symbols(const std::uint16_t* p) { return _mm_loadu_si128((const __m128i*)p); }
    static INLINE Symbols all_symbols(std::uint16_t s) { return _mm_set1_epi16((short)s); }
    static INLINE Mask equal(Symbols x, Symbols y) { return _mm_cmpeq_epi16_mask(x, y); }
    static INLINE Vector keep(Mask m, Vector x) { return _mm512_maskz_mov_pd(m, x); }
};

#elif defined(__AVX2__) && defined(__FMA__)
constexpr const char* INSTRUCTIONS = "AVX2";

template <class T>
struct Simd;

template <>
struct Simd<float> {
    using Vector = __m256;
    using Symbols = __m128i;
    using Mask = __m256;
    static constexpr int LANES = 8;
    static INLINE Vector all(float x) { return _mm256_set1_ps(x); }
    static INLINE Vector load(const float* p) { return _mm256_load_ps(p); }
    static INLINE void store(float* p, Vector x) { _mm256_store_ps(p, x); }
    static INLINE Vector fma(Vector x, Vector y, Vector z) { return _mm256_fmadd_ps(x, y, z); }
    static INLINE Vector add(Vector x, Vector y) { return _mm256_add_ps(x, y); }
    static INLINE Symbols symbols(const std::uint16_t* p) { return _mm_loadu_si128((const __m128i*)p); }
    static INLINE Symbols all_symbols(std::uint16_t s) { return _mm_set1_epi16((short)s); }
    static INLINE Mask equal(Symbols x, Symbols y) {
        return _mm256_castsi256_ps(_mm256_cvtepi16_epi32(_mm_cmpeq_epi16(x, y)));
    }
    static INLINE Vector keep(Mask m, Vector x) { return _mm256_and_ps(m, x); }
};

template <>
struct Simd<double> {
    using Vector = __m256d;
    using Symbols = __m128i;
    using Mask = __m256d;
    static constexpr int LANES = 4;
    static INLINE Vector all(double x) { return _mm256_set1_pd(x); }
    static INLINE Vector load(const double* p) { return _mm256_load_pd(p); }
    static INLINE void store(double* p, Vector x) { _mm256_store_pd(p, x); }
    static INLINE Vector fma(Vector x, Vector y, Vector z) { return _mm256_fmadd_pd(x, y, z); }
    static INLINE Vector add(Vector x, Vector y) { return _mm256_add_pd(x, y); }
    static INLINE Symbols symbols(const std::uint16_t* p) { return _mm_loadl_epi64((const __m128i*)p); }
    static INLINE Symbols all_symbols(std::uint16_t s) { return _mm_set1_epi16((short)s); }
    static INLINE Mask equal(Symbols x, Symbols y) {
        return _mm256_castsi256_pd(_mm256_cvtepi16_epi64(_mm_cmpeq_epi16(x, y)));
    }
    static INLINE Vector keep(Mask m, Vector x) { return _mm256_and_pd(m, x); }
};

#else
constexpr const char* INSTRUCTIONS = "16-byte vector extensions";

// Vector extensions of GCC and Clang; 16 bytes, which every 64-bit processor has registers for.
template <class T>
struct Simd {
    typedef T Vector __attribute__((vector_size(16)));
    using Number = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    typedef Number Mask __attribute__((vector_size(16)));
    static constexpr int LANES = 16 / sizeof(T);
    typedef std::uint16_t Packed __attribute__((vector_size(2 * LANES)));
    using Symbols = Mask;
    static INLINE Vector all(T x) { return x - Vector{}; }
    static INLINE Vector load(const T* p) { return *(const Vector*)p; }
    static INLINE void store(T* p, Vector x) { *(Vector*)p = x; }
    static INLINE Vector fma(Vector x, Vector y, Vector z) { return x * y + z; }
    static INLINE Vector add(Vector x, Vector y) { return x + y; }
    static INLINE Symbols symbols(const std::uint16_t* p) {
        Packed packed;
        std::memcpy(&packed, p, sizeof packed);
        return __builtin_convertvector(packed, Mask);
    }
    static INLINE Symbols all_symbols(std::uint16_t s) { return Number(s) - Mask{}; }
    static INLINE Mask equal(Symbols x, Symbols y) { return x == y; }
    static INLINE Vector keep(Mask m, Vector x) { return (Vector)(m & (Mask)x); }
};

#endif

// Calls f with the constants 0..N-1: loops that are unrolled before arrays are given registers.
template <int N, class F>
INLINE void unrolled(F&& f) {
    [&]<int... I>(std::integer_sequence<int, I...>) {
        (f(std::integral_constant<int, I>{}), ...);
    }(std::make_integer_sequence<int, N>{});
}

// ---- The recurrence. ----

// ROWS consecutive rows against all columns. state: width x (ORDER - 1) x (1 + D) vectors; sums: ORDER x (1 + D).
template <class T, int ORDER, bool D, int ROWS>
void sweep(const std::uint16_t* row, const std::uint16_t* columns, int width, T* state, T* sums, T gap_decay) {
    using S = Simd<T>;
    using Vector = typename S::Vector;
    constexpr int L = S::LANES, PARTS = 1 + D, C = ORDER > 1 ? ORDER - 1 : 1;
    const Vector gap = S::all(gap_decay), one = S::all(T(1)), zero = S::all(T(0));
    Vector h[ORDER], dh[ORDER], r[ROWS][C], dr[ROWS][C];
    typename S::Symbols symbol[ROWS];
    unrolled<ORDER>([&](auto i) {
        h[i] = S::load(sums + i * PARTS * L);
        if constexpr (D) dh[i] = S::load(sums + (i * PARTS + 1) * L);
    });
    unrolled<ROWS>([&](auto q) {
        symbol[q] = S::all_symbols(row[q]);
        unrolled<C>([&](auto i) { r[q][i] = dr[q][i] = zero; });
    });
    for (int k = 0; k < width; ++k, columns += GROUP, state += (ORDER - 1) * PARTS * L) {
        const auto here = S::symbols(columns);
        Vector c[C], dc[C];
        unrolled<ORDER - 1>([&](auto i) {
            c[i] = S::load(state + i * PARTS * L);
            if constexpr (D) dc[i] = S::load(state + (i * PARTS + 1) * L);
        });
        unrolled<ROWS>([&](auto q) {
            const auto match = S::equal(here, symbol[q]);
            Vector p = S::keep(match, one), dp = zero;
            h[0] = S::add(h[0], p);
            unrolled<ORDER - 1>([&](auto i) {
                const Vector before = r[q][i], was = c[i];
                c[i] = S::fma(gap, was, p);
                r[q][i] = S::fma(gap, before, was);
                if constexpr (D) {
                    const Vector dbefore = dr[q][i], dwas = dc[i];
                    // P_1 does not depend on the gap decay.
                    dc[i] = S::fma(gap, dwas, i == 0 ? was : S::add(was, dp));
                    dr[q][i] = S::fma(gap, dbefore, S::add(before, dwas));
                    dp = S::keep(match, dbefore);
                    dh[i + 1] = S::add(dh[i + 1], dp);
                }
                p = S::keep(match, before);
                h[i + 1] = S::add(h[i + 1], p);
            });
        });
        unrolled<ORDER - 1>([&](auto i) {
            S::store(state + i * PARTS * L, c[i]);
            if constexpr (D) S::store(state + (i * PARTS + 1) * L, dc[i]);
        });
    }
    unrolled<ORDER>([&](auto i) {
        S::store(sums + i * PARTS * L, h[i]);
        if constexpr (D) S::store(sums + (i * PARTS + 1) * L, dh[i]);
    });
}

// One string, symbol by symbol, against the lanes that start at columns; block is the largest number of rows a pass.
template <class T, int ORDER, bool D>
void one_against_lanes(const std::uint16_t* row, int rows, const std::uint16_t* columns, int width, T* state, T* sums,
                       T gap, int block) {
    constexpr int L = Simd<T>::LANES, PARTS = 1 + D;
    std::fill_n(sums, ORDER * PARTS * L, T(0));
    std::fill_n(state, std::size_t(width) * (ORDER - 1) * PARTS * L, T(0));
    int j = 0;
    if (block >= 3)
        for (; j + 3 <= rows; j += 3) sweep<T, ORDER, D, 3>(row + j, columns, width, state, sums, gap);
    if (block >= 2)
        for (; j + 2 <= rows; j += 2) sweep<T, ORDER, D, 2>(row + j, columns, width, state, sums, gap);
    for (; j < rows; ++j) sweep<T, ORDER, D, 1>(row + j, columns, width, state, sums, gap);
}

// ---- Many pairs. ----

struct Strings {
    int count = 0, longest = 0;
    std::vector<std::uint16_t> rows;     // count x longest, in sorted order
    std::vector<int> lengths;            // in sorted order
    std::vector<int> numbers;            // original number of each string in sorted order
    std::vector<std::uint16_t> columns;  // group after group, position by position, 16 lanes
    std::vector<std::size_t> starts;
    std::vector<int> widths;
};

// Fading accumulators pass through the denormal range, where x86 arithmetic is a hundred times slower.
class DenormalsFlushed {
#if defined(__SSE__)
   public:
    DenormalsFlushed() : control_(_mm_getcsr()) { _mm_setcsr(control_ | 0x8040); }
    ~DenormalsFlushed() { _mm_setcsr(control_); }

   private:
    unsigned control_;
#endif
};

template <class T>
std::unique_ptr<T, void (*)(void*)> workspace(std::size_t size) {
    const std::size_t bytes = (std::max<std::size_t>(size, 1) * sizeof(T) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    return {static_cast<T*>(std::aligned_alloc(CACHE_LINE, bytes)), std::free};
}

// The strings of `single`, one at a time, with the groups of `grouped`; the same object for a symmetric matrix.
template <class T, int ORDER, bool D>
void all_pairs(const Strings& single, const Strings& grouped, T gap, const T* weights, T* values, T* derivatives,
               std::size_t single_stride, std::size_t grouped_stride, int threads, int block) {
    constexpr int L = Simd<T>::LANES, PARTS = 1 + D;
    const bool symmetric = &single == &grouped;
    const int groups = int(grouped.widths.size());
    // The dearest groups first; several pieces of rows where there are few groups for the threads.
    const int pieces = std::max(1, std::min(single.count, 8 * threads / std::max(groups, 1)));
    std::atomic<int> next{0};
    const auto work = [&] {
        [[maybe_unused]] const DenormalsFlushed flushed;
        const auto state = workspace<T>(std::size_t(grouped.widths.empty() ? 0 : grouped.widths.back()) *
                                        (ORDER > 1 ? ORDER - 1 : 1) * PARTS * L);
        const auto sums = workspace<T>(ORDER * PARTS * L);
        for (int task; (task = next++) < groups * pieces;) {
            const int group = groups - 1 - task / pieces, piece = task % pieces;
            const int limit = symmetric ? std::min((group + 1) * GROUP, single.count) : single.count;
            const int first = int(std::int64_t(limit) * piece / pieces);
            const int last = int(std::int64_t(limit) * (piece + 1) / pieces);
            for (int lane = 0; lane < GROUP; lane += L) {
                const int start = group * GROUP + lane, used = std::min(L, grouped.count - start);
                if (used <= 0) continue;
                const int end = symmetric ? std::min(last, start + used) : last;
                for (int row = first; row < end; ++row) {
                    one_against_lanes<T, ORDER, D>(single.rows.data() + std::size_t(row) * single.longest,
                                                   single.lengths[row], grouped.columns.data() + grouped.starts[group] +
                                                   lane, grouped.widths[group], state.get(), sums.get(), gap, block);
                    for (int part = 0; part < PARTS; ++part) {
                        T total[L] = {};
                        for (int i = 0; i < ORDER; ++i)
                            for (int l = 0; l < L; ++l) total[l] += weights[i] * sums.get()[(i * PARTS + part) * L + l];
                        T* out = part ? derivatives : values;
                        const std::size_t a = single.numbers[row];
                        for (int l = symmetric ? std::max(0, row - start) : 0; l < used; ++l) {
                            const std::size_t b = grouped.numbers[start + l];
                            out[a * single_stride + b * grouped_stride] = total[l];
                            if (symmetric) out[b * single_stride + a * grouped_stride] = total[l];
                        }
                    }
                }
            }
        }
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work);
    work();
    for (auto& thread : others) thread.join();
}

template <class T, bool D, int ORDER = 8>
void of_order(int order, const Strings& single, const Strings& grouped, double gap, const double* weights, T* values,
              T* derivatives, std::size_t single_stride, std::size_t grouped_stride, int threads, int block) {
    if (order == ORDER) {
        T own[ORDER];
        for (int i = 0; i < ORDER; ++i) own[i] = T(weights[i]);
        all_pairs<T, ORDER, D>(single, grouped, T(gap), own, values, derivatives, single_stride, grouped_stride,
                               threads, block);
    } else if constexpr (ORDER > 1) {
        of_order<T, D, ORDER - 1>(order, single, grouped, gap, weights, values, derivatives, single_stride,
                                  grouped_stride, threads, block);
    }
}

template <class T>
void run(const Strings& a, const Strings& b, double gap, int order, const double* weights, T* values, T* derivatives,
         int threads, int block) {
    // Either side can be the grouped one; the cheaper leaves fewer lanes empty.
    const auto vectors = [](const Strings& s) { return std::int64_t(s.widths.size()); };
    const bool columns_grouped = vectors(b) * a.count <= vectors(a) * b.count;
    const Strings &single = columns_grouped ? a : b, &grouped = columns_grouped ? b : a;
    const std::size_t row = std::size_t(b.count), column = 1;
    const std::size_t single_stride = columns_grouped ? row : column, grouped_stride = columns_grouped ? column : row;
    if (derivatives)
        of_order<T, true>(order, single, grouped, gap, weights, values, derivatives, single_stride, grouped_stride,
                          threads, block);
    else
        of_order<T, false>(order, single, grouped, gap, weights, values, derivatives, single_stride, grouped_stride,
                           threads, block);
}

}  // namespace

extern "C" {

const char* yardstick_instructions() { return INSTRUCTIONS; }

void* yardstick_pack(const std::uint16_t* tokens, const std::int32_t* lengths, int count, int width) {
    auto* packed = new Strings;
    packed->count = count;
    packed->numbers.resize(count);
    std::iota(packed->numbers.begin(), packed->numbers.end(), 0);
    std::stable_sort(packed->numbers.begin(), packed->numbers.end(),
                     [&](int x, int y) { return lengths[x] < lengths[y]; });
    for (int number : packed->numbers) packed->lengths.push_back(lengths[number]);
    packed->longest = count ? packed->lengths.back() : 0;
    packed->rows.resize(std::size_t(count) * packed->longest);
    for (int i = 0; i < count; ++i)
        std::copy_n(tokens + std::size_t(packed->numbers[i]) * width, packed->lengths[i],
                    packed->rows.begin() + std::size_t(i) * packed->longest);
    for (int first = 0; first < count; first += GROUP) {
        const int last = std::min(first + GROUP, count), longest = packed->lengths[last - 1];
        packed->starts.push_back(packed->columns.size());
        packed->widths.push_back(longest);
        packed->columns.resize(packed->columns.size() + std::size_t(longest) * GROUP, PADDING);
        for (int i = first; i < last; ++i)
            for (int k = 0; k < packed->lengths[i]; ++k)
                packed->columns[packed->starts.back() + std::size_t(k) * GROUP + (i - first)] =
                    packed->rows[std::size_t(i) * packed->longest + k];
    }
    return packed;
}

void yardstick_free(void* strings) { delete static_cast<Strings*>(strings); }

// Sum over orders of weights times h_i(a, b), and its derivative in the gap decay where that is not null; row-major
// count(a) x count(b). The same pointer twice stands for a symmetric matrix, whose pairs are computed once. block is
// the largest number of rows a pass, 1 to 3.
void yardstick_float32(const void* a, const void* b, double gap, int order, const double* weights, float* values,
                       float* derivatives, int threads, int block) {
    run<float>(*static_cast<const Strings*>(a), *static_cast<const Strings*>(b), gap, order, weights, values,
               derivatives, threads, block);
}

void yardstick_float64(const void* a, const void* b, double gap, int order, const double* weights, double* values,
                       double* derivatives, int threads, int block) {
    run<double>(*static_cast<const Strings*>(a), *static_cast<const Strings*>(b), gap, order, weights, values,
                derivatives, threads, block);
}
}
