// Constants of the functions in this folder. Made by tables.py; change that, and run it.
#pragma once

#include <array>
#include <cstdint>

// clang-format off
namespace eagle::kernel::math {

inline constexpr double steps_of_exp = 0x1.71547652b82fep+4;  // 16 / ln 2
inline constexpr double step_of_exp = 0x1.62e42fefa0000p-5;  // ln 2 / 16: 38 bits
inline constexpr double step_of_exp_lo = 0x1.cf79abc9e3b3ap-44;  // the rest
// 2^(j/16)
inline constexpr std::array<double, 16> power_of_two = {
    0x1.0000000000000p+0, 0x1.0b5586cf9890fp+0, 0x1.172b83c7d517bp+0, 0x1.2387a6e756238p+0,
    0x1.306fe0a31b715p+0, 0x1.3dea64c123422p+0, 0x1.4bfdad5362a27p+0, 0x1.5ab07dd485429p+0,
    0x1.6a09e667f3bcdp+0, 0x1.7a11473eb0187p+0, 0x1.8ace5422aa0dbp+0, 0x1.9c49182a3f090p+0,
    0x1.ae89f995ad3adp+0, 0x1.c199bdd85529cp+0, 0x1.d5818dcfba487p+0, 0x1.ea4afa2a490dap+0,
};
// the rest
inline constexpr std::array<double, 16> power_of_two_lo = {
    0.0, 0x1.8a62e4adc610bp-54, -0x1.19041b9d78a76p-55, 0x1.9b07eb6c70573p-54,
    0x1.6f46ad23182e4p-55, 0x1.ada0911f09ebcp-55, 0x1.d4397afec42e2p-56, 0x1.6324c054647adp-54,
    -0x1.bdd3413b26456p-54, -0x1.41577ee04992fp-55, 0x1.6e9f156864b27p-54, 0x1.c7c46b071f2bep-56,
    0x1.7a1cd345dcc81p-54, 0x1.11065895048ddp-55, 0x1.2ed02d75b3707p-55, -0x1.e9c23179c2893p-54,
};
// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 32: e^r to 2^-66.3
inline constexpr std::array<double, 6> exp_terms = {
    0x1.0000000000004p-1, 0x1.555555555555ap-3, 0x1.555555547ea17p-5, 0x1.111111107c04ap-7,
    0x1.6c18422b8e78dp-10, 0x1.a01ba07c7208dp-13,
};

inline constexpr double ln_2 = 0x1.62e42fefa3800p-1;  // ln 2 on the grid of 2^-42
inline constexpr double ln_2_lo = 0x1.ef35793c76730p-45;  // the rest
inline constexpr double ln_2_nearest = 0x1.62e42fefa39efp-1;  // ln 2
inline constexpr double per_ln_2 = 0x1.71547652b82fep+0;  // 1 / ln 2
inline constexpr double per_ln_2_lo = 0x1.777d0ffda0d24p-56;  // the rest
inline constexpr double per_ln_10 = 0x1.bcb7b1526e50ep-2;  // 1 / ln 10
inline constexpr double per_ln_10_lo = 0x1.95355baaafad3p-57;  // the rest
// about 1 / m for the 16 parts of the mantissas, in few bits
inline constexpr std::array<double, 16> log_inverse = {
    0x1.6400000000000p+0, 0x1.5600000000000p+0, 0x1.4800000000000p+0, 0x1.3c00000000000p+0,
    0x1.3000000000000p+0, 0x1.2400000000000p+0, 0x1.1a00000000000p+0, 0x1.1200000000000p+0,
    0x1.0800000000000p+0, 0x1.0000000000000p+0, 0x1.e200000000000p-1, 0x1.c800000000000p-1,
    0x1.b000000000000p-1, 0x1.9a00000000000p-1, 0x1.8600000000000p-1, 0x1.7400000000000p-1,
};
// -ln of that, on the grid of 2^-42
inline constexpr std::array<double, 16> log_value = {
    -0x1.51aad872e0000p-2, -0x1.2895a13de8000p-2, -0x1.fb9186d5e4000p-3, -0x1.af3c94e80c000p-3,
    -0x1.5ff3070a7a000p-3, -0x1.0d77e7cd08000p-3, -0x1.8c345d6318000p-4, -0x1.16536eea38000p-4,
    -0x1.f829b0e780000p-6, 0.0, 0x1.eea31c0068000p-5, 0x1.da72763844000p-4,
    0x1.5bf406b544000p-3, 0x1.c6ffbc6f00000p-3, 0x1.16b5ccbad0000p-2, 0x1.4718dc271c000p-2,
};
// the rest
inline constexpr std::array<double, 16> log_value_lo = {
    0x1.f4bd8db0a7cc1p-44, -0x1.a8d7ad24c13f0p-44, 0x1.d572aab993c87p-47, 0x1.a4e633fcd9066p-52,
    0x1.8586f183bebf2p-44, -0x1.cb2cd2ee2f482p-44, -0x1.b20f5acb42a66p-44, 0x1.47c5e768fa309p-46,
    -0x1.980267c7e09e4p-45, 0.0, 0x1.c3dd83606d891p-44, 0x1.a89401fa71733p-46,
    -0x1.27023eb68981cp-46, 0x1.ee138d3a69d43p-44, -0x1.23299042d74bfp-44, 0x1.06c18fb4c14c5p-44,
};
// (ln(1 + r) - r) / r^2 for |r| <= 0.0331: the logarithm to 2^-61.4 of itself
inline constexpr std::array<double, 9> log_terms = {
    -0x1.0000000000000p-1, 0x1.55555555554b0p-2, -0x1.ffffffffffb2cp-3, 0x1.9999999c6444ap-3,
    -0x1.5555555afe11fp-3, 0x1.24922b1733f97p-3, -0x1.ffffaa78a6a32p-4, 0x1.c81b5fed6b669p-4,
    -0x1.9ab48024a53d5p-4,
};
// about 1 / (1 + j/224), j = 0..7, -8..-1, in few bits
inline constexpr std::array<double, 16> finer_inverse = {
    0x1.0000000000000p+0, 0x1.fdc0000000000p-1, 0x1.fb80000000000p-1, 0x1.f940000000000p-1,
    0x1.f700000000000p-1, 0x1.f4e0000000000p-1, 0x1.f2a0000000000p-1, 0x1.f080000000000p-1,
    0x1.0980000000000p+0, 0x1.0840000000000p+0, 0x1.0700000000000p+0, 0x1.05e0000000000p+0,
    0x1.04a0000000000p+0, 0x1.0380000000000p+0, 0x1.0240000000000p+0, 0x1.0120000000000p+0,
};
// -ln of that, on the grid of 2^-42
inline constexpr std::array<double, 16> finer_value = {
    0.0, 0x1.20a279e700000p-8, 0x1.2145e939e0000p-7, 0x1.b2df78a420000p-7,
    0x1.228fb1fea0000p-6, 0x1.67ecb49bc0000p-6, 0x1.b1b08c1c30000p-6, 0x1.f7a9b16780000p-6,
    -0x1.2a7ec22150000p-5, -0x1.03d5d85e70000p-5, -0x1.b9fc027b00000p-6, -0x1.73c01cd770000p-6,
    -0x1.255ba259f0000p-6, -0x1.bcf712c740000p-7, -0x1.1ebde2d1a0000p-7, -0x1.1f5e7919c0000p-8,
};
// the rest
inline constexpr std::array<double, 16> finer_value_lo = {
    0.0, -0x1.f65934b6ec6c3p-44, 0x1.e3d1238c4ea00p-44, 0x1.14c647a5d4543p-44,
    0x1.713e3284991fep-45, 0x1.cde236044c670p-44, 0x1.0aca03a962454p-44, 0x1.42ad9271be7d7p-45,
    0x1.78ce77a9163fep-45, -0x1.f778960ed29cfp-44, 0x1.b9a010ae6922ap-44, -0x1.fd25e0cb17a56p-44,
    -0x1.e38e08390cc75p-44, -0x1.c25e097bd9771p-46, 0x1.a0683ff48dc36p-45, -0x1.7ed6d505ac2b9p-44,
};
// (ln(1 + r) - r + r^2/2) / r^3 for |r| <= 1/400: to 2^-68.8 of itself
inline constexpr std::array<double, 5> finer_terms = {
    0x1.5555555555555p-2, -0x1.ffffffffe9e34p-3, 0x1.99999999680c1p-3, -0x1.5555f16fd6bc5p-3,
    0x1.24930a4fede30p-3,
};

inline constexpr double per_half_pi = 0x1.45f306dc9c883p-1;  // 2 / pi
inline constexpr double half_pi_first = 0x1.921fb54400000p+0;  // pi / 2: 33 bits
inline constexpr double half_pi_second = 0x1.0b4611a600000p-34;  // the next 33
inline constexpr double half_pi_third = 0x1.3198a2e037073p-69;  // the rest
inline constexpr double half_pi = 0x1.921fb54442d18p+0;  // pi / 2
inline constexpr double half_pi_lo = 0x1.1a62633145c07p-54;  // the rest
// (sin r - r) / r^3 in r^2, for |r| <= pi/4: the sine to 2^-58.0 of itself
inline constexpr std::array<double, 6> sin_terms = {
    -0x1.5555555555549p-3, 0x1.111111110f87ap-7, -0x1.a01a019c118d7p-13, 0x1.71de3577ad306p-19,
    -0x1.ae5e663365201p-26, 0x1.5d92feea18e06p-33,
};
// (cos r - 1 + r^2/2) / r^4 in r^2, for |r| <= pi/4: the cosine to 2^-64.2
inline constexpr std::array<double, 6> cos_terms = {
    0x1.555555555554cp-5, -0x1.6c16c16c1517dp-10, 0x1.a01a019cb1a21p-16, -0x1.27e4f809dcb60p-22,
    0x1.1ee9ebdbaf1d8p-29, -0x1.8fae9580a9264p-37,
};
// 64 zeros, then the bits of 2/pi, 32 a word
inline constexpr std::array<std::uint64_t, 64> bits_of_per_half_pi = {
    0x00000000, 0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
    0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
    0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b,
    0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
    0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab,
    0xf0cfbc20, 0x9af4361d, 0xa9e39161, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000,
    0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000,
    0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000,
};

// tangents between the knots 0, 3/32, 1/8, 3/16, ..., 8, 12; the last is 1 / 0
inline constexpr std::array<double, 16> atan_centre = {
    0.0, 0x1.c000000000000p-4, 0x1.3fc0000000000p-3, 0x1.bf80000000000p-3,
    0x1.3ec0000000000p-2, 0x1.be80000000000p-2, 0x1.3c80000000000p-1, 0x1.bc00000000000p-1,
    0x1.3840000000000p+0, 0x1.b940000000000p+0, 0x1.3500000000000p+1, 0x1.b780000000000p+1,
    0x1.33c0000000000p+2, 0x1.b700000000000p+2, 0x1.3340000000000p+3, 0x1.0000000000000p+0,
};
// their arc tangents
inline constexpr std::array<double, 16> atan_value = {
    0.0, 0x1.be39ebe6f07c3p-4, 0x1.3d3074b7c3e81p-3, 0x1.b8934bf66a328p-3,
    0x1.3503d1c7d4b03p-2, 0x1.a50c70f92af19p-2, 0x1.1b7a6f37ac1d6p-1, 0x1.6dc44551553afp-1,
    0x1.c4a42616fb126p-1, 0x1.0b8ab6c344970p+0, 0x1.2d9654c66566fp+0, 0x1.4992bf51bbe3dp+0,
    0x1.5da24da770593p+0, 0x1.6d10525089892p+0, 0x1.778eac18f6236p+0, 0x1.921fb54442d18p+0,
};
// the rest
inline constexpr std::array<double, 16> atan_value_lo = {
    0.0, 0x1.f7b8f29a05987p-58, 0x1.b3d68ba2b1227p-57, -0x1.79624b79f3860p-58,
    0x1.eaff17d7ac599p-57, 0x1.10466b3dcb0c4p-57, -0x1.4dcbf4f6df626p-56, -0x1.bf8863573828ep-58,
    -0x1.2bb979d8ad392p-56, 0x1.bafc50d419f2ep-56, 0x1.7bebc063c8655p-54, -0x1.cad8e8dfdd05fp-54,
    -0x1.27868da9a6cd9p-54, 0x1.ec3f8b283d806p-54, -0x1.080c4fd52b284p-56, 0x1.1a62633145c07p-54,
};
// (atan z - z) / z^3 in z^2, for |z| <= 0.0995: to 2^-63.4 of itself
inline constexpr std::array<double, 6> atan_terms = {
    -0x1.555555555554cp-2, 0x1.9999999990e60p-3, -0x1.2492490e4fe2ap-3, 0x1.c71c3d641b6e7p-4,
    -0x1.743de367d8e27p-4, 0x1.31e82eba9d9d5p-4,
};
// (asin x - x) / x^3 in x^2, for |x| <= 1/2: to 2^-59.8 of itself
inline constexpr std::array<double, 13> asin_terms = {
    0x1.5555555555578p-3, 0x1.333333332df7dp-4, 0x1.6db6db72261d7p-5, 0x1.f1c71a8dbbff2p-6,
    0x1.6e8bdfa746431p-6, 0x1.1c49e2abdc1bbp-6, 0x1.ca20cf89ad3f3p-7, 0x1.757b6de8cb19ep-7,
    0x1.61743794e7b37p-7, 0x1.e2ba925a64766p-9, 0x1.6493e375b0c35p-6, -0x1.5956357bff6a9p-6,
    0x1.0bb0eae8a5e66p-5,
};

// m^(-1/3) for m in [1, 2) to 2^-17.6
inline constexpr std::array<double, 6> cbrt_start = {
    0x1.c875f1d446801p+0, -0x1.92b5023c01719p+0, 0x1.40ec1dbc846aap+0, -0x1.358f789fd2a28p-1,
    0x1.444cf80b3f839p-3, -0x1.1bd1a69fa9c2ep-6,
};
// 2^(-k/3), k = 0, 1, 2
inline constexpr std::array<double, 4> cbrt_scale = {
    0x1.0000000000000p+0, 0x1.965fea53d6e3dp-1, 0x1.428a2f98d728bp-1, 0x1.0000000000000p+0,
};

// erf(x) / x around x = (2 j + 1) 0.1875: coefficient, piece
inline constexpr std::array<std::array<double, 16>, 15> erf_terms = {{
    {0x1.1d83ecffec36fp+0, 0x1.0515eb269a871p+0, 0x1.bd27934b60faap-1, 0x1.6d59d74762b16p-1,
     0x1.2a3f118acbfb6p-1, 0x1.eebaa9dc6cd65p-2, 0x1.a3dd53a96f827p-2, 0x1.6c10437d90960p-2,
     0x1.4140b7597ed16p-2, 0x1.1f703f011c050p-2, 0x1.04104093ef2dap-2, 0x1.dae60763144f3p-3,
     0x1.b4e81b4e42575p-3, 0x1.948b0fcd6d35cp-3, 0x1.78a4c8178a466p-3, 0x1.6058160581604p-3},
    {-0x1.1ad8fe728fb15p-3, -0x1.679e55f14d0ebp-2, -0x1.b5e332cde440cp-2, -0x1.8f809e64ed9a2p-2,
     -0x1.39c6f88e49115p-2, -0x1.cfd13eabffa6cp-3, -0x1.56032d5d0baafp-3, -0x1.02968c04ffb99p-3,
     -0x1.9315ad7b4b376p-4, -0x1.42bbe2c4d7a5bp-4, -0x1.0830f66ef043ep-4, -0x1.b87c4fe0b3d4bp-5,
     -0x1.74d3b7b0c35f8p-5, -0x1.3fa39ab50c6aep-5, -0x1.15123aeb0f550p-5, -0x1.e4f25ade496f5p-6},
    {-0x1.6948b59e1edfbp-2, -0x1.957878b9a0e1fp-3, -0x1.96b59010877d9p-7, 0x1.881c8071ff82dp-4,
     0x1.dbcb2d65fceb2p-4, 0x1.8017a093cae02p-4, 0x1.0c7a53b881f44p-4, 0x1.6c6096b38a50bp-5,
     0x1.f91ddc13f7d73p-6, 0x1.6a4f9f68b08bbp-6, 0x1.0c61a08508630p-6, 0x1.9890e7e0057f1p-7,
     0x1.3e254d8c41262p-7, 0x1.f91bd1ac9e481p-8, 0x1.97a51ec68799ep-8, 0x1.4dba0cfc10d42p-8},
    {0x1.4c6796aabb5a5p-4, 0x1.6262c6c4b0c5cp-3, 0x1.1daad1cca2f3bp-3, 0x1.abb88a77c2f6bp-5,
     -0x1.0b4f228170e6dp-7, -0x1.aa2cb39217798p-6, -0x1.704381c110203p-6, -0x1.ee6404fba48eap-7,
     -0x1.3a0bd7e30dc20p-7, -0x1.964941ef944e0p-8, -0x1.109b4df2e15e3p-8, -0x1.7af4d27dffe31p-9,
     -0x1.0f7bf56bf2f54p-9, -0x1.8f19239d02a27p-10, -0x1.2be074ca57995p-10, -0x1.cb52a6842395ap-11},
    {0x1.95f90c6999754p-4, 0x1.1354bdb07271ep-6, -0x1.a83203f32f653p-5, -0x1.c067e3cd510efp-5,
     -0x1.92506b2928a20p-6, -0x1.1403e625d6726p-9, 0x1.3c94b39db0d98p-8, 0x1.2593e9b285b92p-8,
     0x1.799525ef51a8cp-9, 0x1.c4c8fb7828488p-10, 0x1.14adb609f336ep-10, 0x1.5f77ad1be7cffp-11,
     0x1.cf54ab947dcdap-12, 0x1.3b56372034f31p-12, 0x1.b932b18151748p-13, 0x1.3c17d8700c4ffp-13},
    {-0x1.d0686f610201fp-6, -0x1.92fd6788ed4e8p-5, -0x1.379108eacb1fap-6, 0x1.8999afcf22e8ap-7,
     0x1.092fbb370f762p-6, 0x1.e02ba3bf4d5dbp-8, 0x1.ff2ed0d48cb34p-11, -0x1.ab92808c96083p-11,
     -0x1.93798bec2a6aep-11, -0x1.eb86a76f71565p-12, -0x1.17a1160487501p-12, -0x1.45d210200ceabp-13,
     -0x1.8b5c04e7bdcbap-14, -0x1.f24f140540bb4p-15, -0x1.448f3749e9525p-15, -0x1.b30d8ced33a34p-16},
    {-0x1.677ae2338d282p-6, 0x1.2aefea8c300cap-8, 0x1.20af561dec0dcp-6, 0x1.007ad2e1b038dp-7,
     -0x1.5e721454f4d92p-9, -0x1.03b7936bdee88p-8, -0x1.abb3881965b1ep-10, -0x1.a9289c18feea5p-13,
     0x1.15c71e18ccc40p-13, 0x1.e645c4ac3ed74p-14, 0x1.159755857a52ap-14, 0x1.2d4e4c686cdb6p-15,
     0x1.5148547111fe5p-16, 0x1.89b80ad98a137p-17, 0x1.dd832b62458adp-18, 0x1.2b6429787026dp-18},
    {0x1.d6a57d5333c8cp-8, 0x1.41881599972d6p-7, -0x1.a5d3ab4f7c391p-12, -0x1.58c81dca429f2p-8,
     -0x1.18828e08cc383p-9, 0x1.5b13febda2ae0p-11, 0x1.af82717783cedp-11, 0x1.28b05ed1ecaa7p-12,
     0x1.afe6ce196038fp-16, -0x1.57153ff117640p-16, -0x1.0257938a2085fp-16, -0x1.13b1770ffe57ap-17,
     -0x1.1f639b68247afp-18, -0x1.370d60333a611p-19, -0x1.5f457f2cf2f49p-20, -0x1.9c10b79b9fc50p-21},
    {0x1.027005c2df84cp-8, -0x1.2092dbc8143e5p-9, -0x1.b1ef4cba74b23p-9, 0x1.247a948c24309p-13,
     0x1.63c24371f7163p-10, 0x1.b4a2fb13e5156p-12, -0x1.5f131535d177cp-13, -0x1.2c7eac74d3351p-13,
     -0x1.41b7eabdb290fp-15, -0x1.c2aed4269a717p-20, 0x1.7f02fcc653a38p-19, 0x1.e50a61610110bp-20,
     0x1.e71ce1f7d0855p-21, 0x1.eb3ccff6935e8p-22, 0x1.02659c9f54d5dp-22, 0x1.1b92456bf19ecp-23},
    {-0x1.781cff0aa38fep-10, -0x1.82ef1a6ac7839p-10, 0x1.80ef66281b35fp-11, 0x1.d048966e130c3p-11,
     -0x1.db5cb21622cfcp-14, -0x1.354c3c717ebc7p-12, -0x1.c026931272af6p-15, 0x1.33381da95617cp-15,
     0x1.561c6574819c3p-16, 0x1.0bf8691bfd216p-18, -0x1.3dc4e1bb3e9aep-24, -0x1.743e16262e0bep-22,
     -0x1.944c1136b4a3fp-23, -0x1.82fe5bf7c9ce1p-24, -0x1.7c16ce830f0a0p-25, -0x1.8649a5387223bp-26},
    {-0x1.36e923deb69c2p-11, 0x1.10f982b3bc75cp-11, 0x1.a9e44ad7bbb25p-12, -0x1.0343c9131bccap-12,
     -0x1.7d4a3fbbf8d12p-13, 0x1.a61b04f1d0763p-15, 0x1.ad4ac5dbd6ec4p-15, 0x1.601ed28c2d84cp-19,
     -0x1.a9bfa05b5664dp-18, -0x1.3633ea2f58597p-19, -0x1.484e54ebd5001p-22, 0x1.30e22995c5c81p-25,
     0x1.37ec884996626p-25, 0x1.2dfebfde2e452p-26, 0x1.174edd4700b40p-27, 0x1.0c918b5c35ae0p-28},
    {0x1.f115c03a2fdb6p-13, 0x1.67afaf15b3aabp-13, -0x1.75c3136928dbfp-13, -0x1.3e736ba319082p-14,
     0x1.2a1946cbc2c69p-14, 0x1.ad780b3854038p-16, -0x1.d51e1e492900ap-17, -0x1.ba417aba2fc85p-18,
     0x1.3d9943b936b9dp-21, 0x1.c4e046ee99192p-21, 0x1.b50f3b48f9726p-23, 0x1.0403ce1089b4ap-26,
     -0x1.6e73880e239afp-28, -0x1.c76b26cdd3f84p-29, -0x1.9901703657ae8p-30, -0x1.7185bc53ee8cfp-31},
    {0x1.4052a548a8345p-14, -0x1.7594fef35a3e6p-14, -0x1.f5e683e8c458dp-16, 0x1.aae2c491d9eabp-15,
     0x1.8d175ff4f379cp-18, -0x1.04de251128b00p-16, -0x1.9f4baf6c34800p-20, 0x1.6030b98720e1fp-19,
     0x1.2700d34a184bbp-21, -0x1.71718f63689cfp-23, -0x1.6d8ff24cf7bafp-24, -0x1.cffe738c14594p-27,
     -0x1.6c701e0bc1395p-33, 0x1.30843f82fcc74p-31, 0x1.27541894f368ep-32, 0x1.fbd5907b1ccc4p-34},
    {-0x1.13d4af41dd2c2p-15, -0x1.f4e817f310b4bp-17, 0x1.c95b2bb8c9bb3p-16, 0x1.7273f1ce5940bp-25,
     -0x1.66ce603027753p-17, 0x1.7a9c0b876717fp-20, 0x1.3d90b7a1a7cd0p-19, -0x1.045e7dc892b87p-22,
     -0x1.67b48bb4158e6p-22, -0x1.14e5df7be4446p-26, 0x1.9bb3bbb4b3960p-26, 0x1.c123975288e3ep-28,
     0x1.67b2b44c0dd6cp-31, -0x1.c4671f6ee7d05p-35, -0x1.965c06a9cf4fbp-35, -0x1.5c85981dc0977p-36},
    {-0x1.1c00b31713362p-17, 0x1.938912824225ep-17, 0x1.b18f6a8942c7cp-24, -0x1.9f9b5ac0f8710p-18,
     0x1.dd9de1115a72fp-20, 0x1.8c0922df8799bp-20, -0x1.470a64bf314a2p-21, -0x1.d6c73cfd113adp-23,
     0x1.5d0f904b835a0p-24, 0x1.de88cd1a26584p-26, -0x1.9d51b2b0a2634p-29, -0x1.34141ae8b58afp-29,
     -0x1.97c67f1421d60p-32, -0x1.35c2d85fc081ap-36, 0x1.cff833eda0e4dp-38, 0x1.d3fca2796caf4p-39},
}};
// the rest of the first coefficients
inline constexpr std::array<double, 16> erf_term_lo = {
    -0x1.e873f2189a5a2p-56, 0x1.eccf5bedc2026p-55, -0x1.293db204cf7a0p-55, 0x1.ee62a8e3f2f7fp-55,
    0x1.7f159147469cep-56, -0x1.f57eb26cb68b6p-57, -0x1.bc36f47de7716p-56, -0x1.9e47142ca4c02p-56,
    0x1.97d315953b16fp-56, 0x1.bc24d160c1844p-59, 0x1.1f9080d4c536ap-57, -0x1.3c2669776a03fp-57,
    -0x1.fb6799af998ebp-58, -0x1.a8490f495bb43p-60, 0x1.bffb9bee54e07p-57, 0x1.f623322a59366p-58,
};
// the middles of four parts a binade from 1/2 on
inline constexpr std::array<double, 32> erfc_centre = {
    0x1.2000000000000p-1, 0x1.6000000000000p-1, 0x1.a000000000000p-1, 0x1.e000000000000p-1,
    0x1.2000000000000p+0, 0x1.6000000000000p+0, 0x1.a000000000000p+0, 0x1.e000000000000p+0,
    0x1.2000000000000p+1, 0x1.6000000000000p+1, 0x1.a000000000000p+1, 0x1.e000000000000p+1,
    0x1.2000000000000p+2, 0x1.6000000000000p+2, 0x1.a000000000000p+2, 0x1.e000000000000p+2,
    0x1.2000000000000p+3, 0x1.6000000000000p+3, 0x1.a000000000000p+3, 0x1.e000000000000p+3,
    0x1.2000000000000p+4, 0x1.6000000000000p+4, 0x1.a000000000000p+4, 0x1.e000000000000p+4,
    0x1.2000000000000p+5, 0x1.6000000000000p+5, 0x1.a000000000000p+5, 0x1.e000000000000p+5,
    0x1.2000000000000p+6, 0x1.6000000000000p+6, 0x1.a000000000000p+6, 0x1.e000000000000p+6,
};
// e^(x x) erfc(x) around those: coefficient, piece
inline constexpr std::array<std::array<double, 32>, 14> erfc_terms = {{
    {0x1.2b84f076e14fbp-1, 0x1.0fce4e96dd619p-1, 0x1.f0723ff5acdf9p-2, 0x1.c7f81382721efp-2,
     0x1.9531e09b149b5p-2, 0x1.5f88f52f3c76bp-2, 0x1.3583f6644327bp-2, 0x1.13e5743b60480p-2,
     0x1.d94446d627932p-3, 0x1.8c9eb68ff27d7p-3, 0x1.54a7a08d4bb45p-3, 0x1.2a2af19c14930p-3,
     0x1.f5b2a049cf4c6p-4, 0x1.9d8a8f2284f2cp-4, 0x1.5f75c42e97171p-4, 0x1.31742f4d8d4d3p-4,
     0x1.fe6cc4a0f9538p-5, 0x1.a273c57e476cep-5, 0x1.627bcc27cb4aep-5, 0x1.33714a024097ep-5,
     0x1.005fe090c5e5dp-5, 0x1.a3bc12161d4ebp-6, 0x1.63438bf2c3ee9p-6, 0x1.63438bf2c3ee9p-6,
     0x1.63438bf2c3ee9p-6, 0x1.63438bf2c3ee9p-6, 0x1.63438bf2c3ee9p-6, 0x1.63438bf2c3ee9p-6,
     0x1.63438bf2c3ee9p-6, 0x1.63438bf2c3ee9p-6, 0x1.63438bf2c3ee9p-6, 0x1.63438bf2c3ee9p-6},
    {-0x1.e18ab7052be7fp-2, -0x1.97fe7bf1c60f0p-2, -0x1.5cbc2c216df00p-2, -0x1.2c84af7c10e14p-2,
     -0x1.e78b356770fbbp-3, -0x1.797a639d8129dp-3, -0x1.2b11e6959934cp-3, -0x1.e36580c7f734ap-4,
     -0x1.6a70d2bb37411p-4, -0x1.0305781330099p-4, -0x1.82a8522b868a1p-5, -0x1.2aa6503acda11p-5,
     -0x1.aa3eb6a946f7ep-6, -0x1.238ca71b93fc3p-6, -0x1.a6e2cf277a0cbp-7, -0x1.404455ba9f3bep-7,
     -0x1.c046699d77d51p-8, -0x1.2ddd3d589bfb0p-8, -0x1.b1be47a913fc3p-9, -0x1.467f441a50cf9p-9,
     -0x1.c661852c5133ap-10, -0x1.30a253d642e9cp-10, -0x1.b49a775427ef7p-11, -0x1.b49a775427ef7p-11,
     -0x1.b49a775427ef7p-11, -0x1.b49a775427ef7p-11, -0x1.b49a775427ef7p-11, -0x1.b49a775427ef7p-11,
     -0x1.b49a775427ef7p-11, -0x1.b49a775427ef7p-11, -0x1.b49a775427ef7p-11, -0x1.b49a775427ef7p-11},
    {0x1.482bd9fad9ed0p-2, 0x1.071da7f78298dp-2, 0x1.aa32b83507192p-3, 0x1.5c775dfc44978p-3,
     0x1.05e72521ca1b8p-3, 0x1.701342cbcea7bp-4, 0x1.0a15ac2adab35p-4, 0x1.8a6efeed233adp-5,
     0x1.0615670e25a7ap-5, 0x1.43b98bac83823p-6, 0x1.a7eddc9ee6425p-7, 0x1.22f0664f3cbf9p-7,
     0x1.62c12cb5f7555p-8, 0x1.95252b932efdcp-9, 0x1.f75ef7a0fb2dap-10, 0x1.4d07bba601411p-10,
     0x1.876373f4a0e9bp-11, 0x1.b1c8923879d76p-12, 0x1.0898f73586fcdp-12, 0x1.59fa2994d54efp-13,
     0x1.920b4fb0716fep-14, 0x1.b9bd9f029a777p-15, 0x1.0c15fcc6f7fe8p-15, 0x1.0c15fcc6f7fe8p-15,
     0x1.0c15fcc6f7fe8p-15, 0x1.0c15fcc6f7fe8p-15, 0x1.0c15fcc6f7fe8p-15, 0x1.0c15fcc6f7fe8p-15,
     0x1.0c15fcc6f7fe8p-15, 0x1.0c15fcc6f7fe8p-15, 0x1.0c15fcc6f7fe8p-15, 0x1.0c15fcc6f7fe8p-15},
    {-0x1.8bed65e01718dp-3, -0x1.2ecd75f4d05d4p-3, -0x1.d43ed8ca5d7a1p-4, -0x1.6dcc9e7a2c9b5p-4,
     -0x1.01343a2c92265p-4, -0x1.4bcdb9d9083c2p-5, -0x1.ba018e6428103p-6, -0x1.2ef92f6f10797p-6,
     -0x1.6883f9919a179p-7, -0x1.84e9ab30e6ab3p-8, -0x1.c24b49c47a2c4p-9, -0x1.1434ae05873abp-9,
     -0x1.218ed930b239ap-10, -0x1.15976ddda3c9dp-11, -0x1.28787f0e7f4c6p-12, -0x1.5783a27fad25ap-13,
     -0x1.53c131b5cb21dp-14, -0x1.3672f098120aep-15, -0x1.41e750b2e0634p-16, -0x1.6dd369db39093p-17,
     -0x1.6332593657797p-18, -0x1.3ff35b4b9df95p-19, -0x1.48fb6bc69793ap-20, -0x1.48fb6bc69793ap-20,
     -0x1.48fb6bc69793ap-20, -0x1.48fb6bc69793ap-20, -0x1.48fb6bc69793ap-20, -0x1.48fb6bc69793ap-20,
     -0x1.48fb6bc69793ap-20, -0x1.48fb6bc69793ap-20, -0x1.48fb6bc69793ap-20, -0x1.48fb6bc69793ap-20},
    {0x1.b1a22aa7a6dc0p-4, 0x1.3e0e0ed6b5f18p-4, 0x1.d7f26045a23f1p-5, 0x1.61fee765ff5d7p-5,
     0x1.d4e711a2df9a8p-6, 0x1.17eba60d31fd9p-6, 0x1.5a142948a9b3ap-7, 0x1.b99589d40f244p-8,
     0x1.da595561f8c9ep-9, 0x1.c2c72fd727ba9p-10, 0x1.d085857a18160p-11, 0x1.fff032a0df986p-12,
     0x1.d00785f2fe34fp-13, 0x1.774f4826df938p-14, 0x1.59b29296c5d59p-15, 0x1.5f8a69c9ddf31p-16,
     0x1.25438103b465fp-17, 0x1.baa1d9d84bb7dp-19, 0x1.8682d21857d86p-20, 0x1.81fb2ba7eb963p-21,
     0x1.3955a9a7c5891p-22, 0x1.cf017aa14e34ep-24, 0x1.936a6b39af682p-25, 0x1.936a6b39af682p-25,
     0x1.936a6b39af682p-25, 0x1.936a6b39af682p-25, 0x1.936a6b39af682p-25, 0x1.936a6b39af682p-25,
     0x1.936a6b39af682p-25, 0x1.936a6b39af682p-25, 0x1.936a6b39af682p-25, 0x1.936a6b39af682p-25},
    {-0x1.b65943018044bp-5, -0x1.358dce2b361d2p-5, -0x1.ba6d691685b3fp-6, -0x1.3fc8366a2e3f3p-6,
     -0x1.910a5d7c0a738p-7, -0x1.bdf24bccac627p-8, -0x1.014eae28304b3p-8, -0x1.33237c3eeacf2p-9,
     -0x1.2bd251bb2f799p-10, -0x1.f99e41ecb0dd4p-12, -0x1.d25ebba1c4adbp-13, -0x1.cfcdea1b1f611p-14,
     -0x1.6d54b133e1dafp-15, -0x1.f4e46d17a1e30p-17, -0x1.8f23feccb801cp-18, -0x1.64fcbb71542fdp-19,
     -0x1.f773505c76068p-21, -0x1.3a555d7a8af6fp-22, -0x1.d868cc70fcd1ep-24, -0x1.96605f1ea371ap-25,
     -0x1.13fdbd8e4ffa4p-26, -0x1.4eabfd67aa6e6p-28, -0x1.ee543f9175d53p-30, -0x1.ee543f9175d53p-30,
     -0x1.ee543f9175d53p-30, -0x1.ee543f9175d53p-30, -0x1.ee543f9175d53p-30, -0x1.ee543f9175d53p-30,
     -0x1.ee543f9175d53p-30, -0x1.ee543f9175d53p-30, -0x1.ee543f9175d53p-30, -0x1.ee543f9175d53p-30},
    {0x1.9dcc15144e2b3p-6, 0x1.1a31bff524574p-6, 0x1.859d3cc5fa71fp-7, 0x1.102167daf782ap-7,
     0x1.446c5166bcf97p-8, 0x1.51ab9ffcdc60ep-9, 0x1.6d609f6aa9705p-10, 0x1.99b60e42d7894p-11,
     0x1.6d7743d0ced6cp-12, 0x1.131bb1602174ep-13, 0x1.c882f022b048ep-15, 0x1.9b50d0d2021e5p-16,
     0x1.1ad6a31498c35p-17, 0x1.4a17e192d447ap-19, 0x1.c871a15a43635p-21, 0x1.67ca2bf69183fp-22,
     0x1.adc5f77b0e994p-24, 0x1.bcbee285404f6p-26, 0x1.1cf1ff67192f8p-27, 0x1.aaf0d3b8c605cp-29,
     0x1.e57844571f7f2p-31, 0x1.e35421af1d927p-33, 0x1.2ea50cf8f23e3p-34, 0x1.2ea50cf8f23e3p-34,
     0x1.2ea50cf8f23e3p-34, 0x1.2ea50cf8f23e3p-34, 0x1.2ea50cf8f23e3p-34, 0x1.2ea50cf8f23e3p-34,
     0x1.2ea50cf8f23e3p-34, 0x1.2ea50cf8f23e3p-34, 0x1.2ea50cf8f23e3p-34, 0x1.2ea50cf8f23e3p-34},
    {-0x1.6ff6b38454b12p-7, -0x1.e5d3e4fd95c1ap-8, -0x1.44bd2e2b88f54p-8, -0x1.b75cb1aca97f1p-9,
     -0x1.f38c6d04fd9ffp-10, -0x1.e8ae68b41256bp-11, -0x1.f1b43d3aafd44p-12, -0x1.070e0cb5df686p-12,
     -0x1.aed7ebc6d4759p-14, -0x1.2312b2588053ep-15, -0x1.b45d025ef6bddp-17, -0x1.65778aacf12bdp-18,
     -0x1.aef8ea2825beap-20, -0x1.add7ac91b071bp-22, -0x1.028f4644d2ebbp-23, -0x1.67f14d33dd6aep-25,
     -0x1.6ce662b936436p-27, -0x1.39728615be803p-29, -0x1.56cb0dcf6d8e7p-31, -0x1.bf9951f640507p-33,
     -0x1.aa5619cf80101p-35, -0x1.5ca8140d58810p-37, -0x1.724f1c724809ep-39, -0x1.724f1c724809ep-39,
     -0x1.724f1c724809ep-39, -0x1.724f1c724809ep-39, -0x1.724f1c724809ep-39, -0x1.724f1c724809ep-39,
     -0x1.724f1c724809ep-39, -0x1.724f1c724809ep-39, -0x1.724f1c724809ep-39, -0x1.724f1c724809ep-39},
    {0x1.364eb2997c686p-8, 0x1.8d62a935be716p-9, 0x1.01b06205c0d8cp-9, 0x1.524f5c6ea4a69p-10,
     0x1.6fd9a5d60f879p-11, 0x1.535f583c45bfbp-12, 0x1.465ecd4230b08p-13, 0x1.4631c4d1ecdf6p-14,
     0x1.ec774509181bap-16, 0x1.2bfb5df4d61e0p-17, 0x1.97dd7b2c0b6fep-19, 0x1.30c2fc4e7a197p-20,
     0x1.43551f4037b8bp-22, 0x1.149ce494d441ap-24, 0x1.22467fa851be1p-26, 0x1.657f3d3afd384p-28,
     0x1.342cdc683fed5p-30, 0x1.b82d6e29d6f18p-33, 0x1.9b411acedc380p-35, 0x1.d445c0229d653p-37,
     0x1.75da60e95ff0fp-39, 0x1.f68348b15e32dp-42, 0x1.c4c5ef9f1e8cep-44, 0x1.c4c5ef9f1e8cep-44,
     0x1.c4c5ef9f1e8cep-44, 0x1.c4c5ef9f1e8cep-44, 0x1.c4c5ef9f1e8cep-44, 0x1.c4c5ef9f1e8cep-44,
     0x1.c4c5ef9f1e8cep-44, 0x1.c4c5ef9f1e8cep-44, 0x1.c4c5ef9f1e8cep-44, 0x1.c4c5ef9f1e8cep-44},
    {-0x1.f301024d7cec7p-10, -0x1.366c6d2fe6eadp-10, -0x1.87347d1337bb5p-11, -0x1.f329c42f73254p-12,
     -0x1.041e390adbe24p-12, -0x1.c5fa6b4faa7edp-14, -0x1.9d62285c6e3f4p-15, -0x1.87a61e65ef5c8p-16,
     -0x1.117a6a5f5a9a8p-17, -0x1.2da32c584b240p-19, -0x1.753cad42615a6p-21, -0x1.fe3e344fe3890p-23,
     -0x1.de0985254e968p-25, -0x1.60002e1ef0109p-27, -0x1.43003b18e1c43p-29, -0x1.608ea5f6f0055p-31,
     -0x1.02e7fceb326ffp-33, -0x1.33ef11b7d311ep-36, -0x1.ec0bb2c8030bbp-39, -0x1.e8e124846bf71p-41,
     -0x1.4758532b0e0fap-43, -0x1.69c4a15ee3613p-46, -0x1.1499a439df4e1p-48, -0x1.1499a439df4e1p-48,
     -0x1.1499a439df4e1p-48, -0x1.1499a439df4e1p-48, -0x1.1499a439df4e1p-48, -0x1.1499a439df4e1p-48,
     -0x1.1499a439df4e1p-48, -0x1.1499a439df4e1p-48, -0x1.1499a439df4e1p-48, -0x1.1499a439df4e1p-48},
    {0x1.80372de56b6efp-11, 0x1.d1154d6cea4ccp-12, 0x1.1d29163e1ea56p-12, 0x1.621c0a38d898fp-13,
     0x1.6273304c075abp-14, 0x1.254e1b3fce6dfp-15, 0x1.fafb8a2f14265p-17, 0x1.c8588521f5818p-18,
     0x1.27a9379f9d083p-19, 0x1.2852bb5b7ada2p-21, 0x1.4ebd276370be6p-23, 0x1.a3bbca0e4ff01p-25,
     0x1.5c4a449ee453dp-27, 0x1.baf6971d5b9c3p-30, 0x1.64477e3cbb2c5p-32, 0x1.5940d233bcdccp-34,
     0x1.b08aac705edf7p-37, 0x1.ad271f0606193p-40, 0x1.25843a8627505p-42, 0x1.fd4abf40cd572p-45,
     0x1.1dfff414ec84ap-47, 0x1.0419923139d41p-50, 0x1.51a6c68b01c46p-53, 0x1.51a6c68b01c46p-53,
     0x1.51a6c68b01c46p-53, 0x1.51a6c68b01c46p-53, 0x1.51a6c68b01c46p-53, 0x1.51a6c68b01c46p-53,
     0x1.51a6c68b01c46p-53, 0x1.51a6c68b01c46p-53, 0x1.51a6c68b01c46p-53, 0x1.51a6c68b01c46p-53},
    {-0x1.1c5271bcd97edp-12, -0x1.4f4101a48cb14p-13, -0x1.9085667ebc7cdp-14, -0x1.e49dda914ddb8p-15,
     -0x1.d2b1c60efe83dp-16, -0x1.6f055a0011209p-17, -0x1.2db32b19eb814p-18, -0x1.0285d0e551559p-19,
     -0x1.37b3d0ebc0d92p-21, -0x1.1ccbd4b77374fp-23, -0x1.26896dce8ab58p-25, -0x1.5392b50a5f4dep-27,
     -0x1.f4c4d68de7790p-30, -0x1.13ce55f015bd9p-32, -0x1.85b76e23be8aap-35, -0x1.4fd2d469d8158p-37,
     -0x1.67af89286ff97p-40, -0x1.2a0ca14799993p-43, -0x1.5d4b07f1c5c59p-46, -0x1.08c14a0b28eaep-48,
     -0x1.f3606e1d21774p-52, -0x1.75c13b7ec812ep-55, -0x1.9bf308b2249d8p-58, -0x1.9bf308b2249d8p-58,
     -0x1.9bf308b2249d8p-58, -0x1.9bf308b2249d8p-58, -0x1.9bf308b2249d8p-58, -0x1.9bf308b2249d8p-58,
     -0x1.9bf308b2249d8p-58, -0x1.9bf308b2249d8p-58, -0x1.9bf308b2249d8p-58, -0x1.9bf308b2249d8p-58},
    {0x1.964e696abb1d7p-14, 0x1.d3277ae8536cbp-15, 0x1.1021116cde38cp-15, 0x1.41245990d4e88p-16,
     0x1.2b1ce998b18e1p-17, 0x1.bfca2adc23768p-19, 0x1.5e9ed25fee818p-20, 0x1.1e6a8b4e3be69p-21,
     0x1.4549d09bbbc55p-23, 0x1.0f2b20b252eb3p-25, 0x1.00f7472e0f6ddp-27, 0x1.109d8f70540dbp-29,
     0x1.6cee7cc8c027ep-32, 0x1.5ae57d91ad3bfp-35, 0x1.ad86aabd11692p-38, 0x1.48954095c5f3bp-40,
     0x1.34fe9a9a2d165p-43, 0x1.a77c9e82ffcc1p-47, 0x1.a6a36579dbcf4p-50, 0x1.16c79a707ee35p-52,
     0x1.c62070b171ef3p-56, 0x1.1405d17e7c980p-59, 0x1.00508147e946dp-62, 0x1.00508147e946dp-62,
     0x1.00508147e946dp-62, 0x1.00508147e946dp-62, 0x1.00508147e946dp-62, 0x1.00508147e946dp-62,
     0x1.00508147e946dp-62, 0x1.00508147e946dp-62, 0x1.00508147e946dp-62, 0x1.00508147e946dp-62},
    {-0x1.1823544dcc261p-15, -0x1.3a645b5df4630p-16, -0x1.658fedf6001b9p-17, -0x1.9bf6319e8f6f3p-18,
     -0x1.72278937bbc96p-19, -0x1.08501dcd1644dp-20, -0x1.8b1ab15e88ceep-22, -0x1.344d4615bc580p-23,
     -0x1.47399628bd723p-25, -0x1.f44283867051ep-28, -0x1.b436b65151e5dp-30, -0x1.ab5f530764396p-32,
     -0x1.fee5cbcae7c93p-35, -0x1.a7111368968b7p-38, -0x1.ce1abffccf1e2p-41, -0x1.3b58905af7585p-43,
     -0x1.fc9d1ab530208p-47, -0x1.23f99a5d45c3fp-50, -0x1.f43dfa9f9976fp-54, -0x1.20a5ccfa58d84p-56,
     -0x1.8b44c98d41b0ep-60, -0x1.8bd39319a7cfep-64, -0x1.3841a57c0d81fp-67, -0x1.3841a57c0d81fp-67,
     -0x1.3841a57c0d81fp-67, -0x1.3841a57c0d81fp-67, -0x1.3841a57c0d81fp-67, -0x1.3841a57c0d81fp-67,
     -0x1.3841a57c0d81fp-67, -0x1.3841a57c0d81fp-67, -0x1.3841a57c0d81fp-67, -0x1.3841a57c0d81fp-67},
}};
// the rest of the first coefficients
inline constexpr std::array<double, 32> erfc_term_lo = {
    0x1.b8bd1acfe4888p-55, -0x1.72106072e9df3p-57, -0x1.7b669ff311ae3p-58, -0x1.3f947ea6fcb3ep-62,
    -0x1.aa50c2d9d7fbcp-58, -0x1.b7eb84a1bb43ep-57, -0x1.88eb8b5b45159p-56, 0x1.ca1dfdea02cdep-56,
    -0x1.a7c8fc47f8619p-58, -0x1.bb4762f87bc03p-57, -0x1.69f6cf54fe69fp-61, -0x1.fa044de5671b4p-57,
    -0x1.f6c6c42e69778p-58, -0x1.5a82bc972cf31p-58, -0x1.a1db408fd6128p-58, -0x1.f827168c3c7e8p-59,
    0x1.e364e62d57ef6p-59, -0x1.6b713ad01954ep-59, -0x1.d4d715be2b2d6p-60, 0x1.f3b979b90daddp-59,
    -0x1.349f2662890e1p-59, -0x1.aee4afea38e69p-61, -0x1.1f682e97bf891p-61, -0x1.1f682e97bf891p-61,
    -0x1.1f682e97bf891p-61, -0x1.1f682e97bf891p-61, -0x1.1f682e97bf891p-61, -0x1.1f682e97bf891p-61,
    -0x1.1f682e97bf891p-61, -0x1.1f682e97bf891p-61, -0x1.1f682e97bf891p-61, -0x1.1f682e97bf891p-61,
};

}  // namespace eagle::kernel::math
