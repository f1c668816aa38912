import { useText } from '../i18n/language';
import * as common from '../i18n/common';
import { Button } from './Button';
import { Row } from './Row';

interface Props {
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => Promise<unknown> };
  label?: string;
}

/** A button that loads the next page of a list, if there is one. */
export function LoadMore({ query, label }: Props) {
  const t = useText(common);
  return (
    query.hasNextPage && (
      <Row>
        <Button isDisabled={query.isFetchingNextPage} onPress={() => void query.fetchNextPage()}>
          {label ?? t.more}
        </Button>
      </Row>
    )
  );
}
