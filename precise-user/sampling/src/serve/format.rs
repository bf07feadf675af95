//! The formats of the page, and which of them a client accepts.

use hyper::{HeaderMap, header::ACCEPT};

use super::metric::{MetricKind, PageMetric};

/// A format of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageFormat {
    /// OpenMetrics 1.0.0.
    OpenMetrics,
    /// The text format of Prometheus, version 0.0.4, which older tools read.
    Prometheus,
}

impl PageFormat {
    /// Returns the format for a request: OpenMetrics, if the client asks for it by name and prefers
    /// no other text.
    pub fn accepted(headers: &HeaderMap) -> Self {
        let (mut open, mut other) = (0.0f32, 0.0f32);
        let fields = headers.get_all(ACCEPT).iter().filter_map(|field| field.to_str().ok());
        for range in fields.flat_map(|field| field.split(',')) {
            let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
            let media = parts.next().unwrap_or_default();
            let (mut weight, mut version) = (1.0, None);
            for parameter in parts {
                match parameter.split_once('=') {
                    Some(("q", text)) => weight = text.parse().unwrap_or(0.0),
                    Some(("version", text)) => version = Some(text.trim_matches('"').to_owned()),
                    _ => {}
                }
            }
            match media.as_str() {
                "application/openmetrics-text" if version.as_deref().is_none_or(|of| of == "1.0.0") => {
                    open = open.max(weight);
                }
                "text/plain" | "text/*" | "*/*" => other = other.max(weight),
                _ => {}
            }
        }
        if open > 0.0 && open >= other { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// Returns the content type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Returns a page in the text format of Prometheus. OpenMetrics describes a family under the name
/// without its suffix, has a type for information, and marks the end; the lines with values are the
/// same.
pub(super) fn of_open_metrics(page: &str) -> String {
    let mut text = String::with_capacity(page.len() + 512);
    for line in page.lines().filter(|line| *line != "# EOF") {
        let described = ["# HELP ", "# TYPE "].into_iter().find_map(|what| {
            let (family, rest) = line.strip_prefix(what)?.split_once(' ')?;
            let metric = PageMetric::ALL.iter().find(|metric| metric.name == family)?;
            let rest = match (what, metric.kind) {
                ("# TYPE ", MetricKind::Info) => "gauge",
                _ => rest,
            };
            Some(format!("{what}{} {rest}", metric.full_name()))
        });
        text += described.as_deref().unwrap_or(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_open_metrics_gets_it() {
        let of = |fields: &[&str]| {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append(ACCEPT, field.parse().unwrap());
            }
            PageFormat::accepted(&headers)
        };
        let of_prometheus = "application/openmetrics-text;version=1.0.0,\
            application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let of_prometheus_3 = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
            encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
            application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        for fields in [
            &[of_prometheus][..],
            &[of_prometheus_3],
            &["Application/OpenMetrics-Text; Version=\"1.0.0\""],
            &["text/plain;q=0.5", "application/openmetrics-text"],
            &["application/openmetrics-text, */*"],
        ] {
            assert_eq!(of(fields), PageFormat::OpenMetrics, "{fields:?}");
        }
        for fields in [
            &[][..],
            &["*/*"],
            &["text/plain"],
            &["text/html,application/xhtml+xml,*/*;q=0.8"],
            &["application/openmetrics-text;q=0"],
            &["application/openmetrics-text;version=0.0.1"],
            &["application/openmetrics-text;q=0.5,text/plain"],
            &["application/openmetrics-text;q=,"],
        ] {
            assert_eq!(of(fields), PageFormat::Prometheus, "{fields:?}");
        }
    }

    #[test]
    fn families_are_described_under_their_full_name() {
        let page = "# HELP precise_samples Samples.\n# TYPE precise_samples counter\n\
            precise_samples_total{a=\"# TYPE precise_samples counter\"} 1\n\
            # HELP precise_build Version.\n# TYPE precise_build info\nprecise_build_info{version=\"0\"} 1\n\
            # HELP precise_series Series.\n# TYPE precise_series gauge\nprecise_series 1.0\n# EOF\n";
        let expected = "# HELP precise_samples_total Samples.\n# TYPE precise_samples_total counter\n\
            precise_samples_total{a=\"# TYPE precise_samples counter\"} 1\n\
            # HELP precise_build_info Version.\n# TYPE precise_build_info gauge\n\
            precise_build_info{version=\"0\"} 1\n\
            # HELP precise_series Series.\n# TYPE precise_series gauge\nprecise_series 1.0\n";
        assert_eq!(of_open_metrics(page), expected);
    }
}
